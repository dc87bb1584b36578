// Settle
// SPDX-License-Identifier: Apache-2.0

/// The head of a request, and its body if that is collected.
package struct HTTPRequest: Hashable, Sendable {
  package var method: String
  package var target: RequestTarget
  package var headers: [HTTPHeader]
  package var body: [UInt8] = []

  package init(method: String, target: RequestTarget, headers: [HTTPHeader] = []) {
    self.method = method
    self.target = target
    self.headers = headers
  }

  /// The values of a header, in order.
  package func values(of name: String) -> [String] {
    headers.filter { $0.isCalled(name) }.map(\.value)
  }

  /// The first value of a header.
  package func value(of name: String) -> String? {
    headers.first { $0.isCalled(name) }?.value
  }

  /// The value of Content-Length; `nil` if it is missing or not a number.
  package var contentLength: Int? { value(of: "Content-Length").flatMap { Int($0) } }

  /// Whether a body follows, empty or not.
  package var hasBody: Bool {
    value(of: "Transfer-Encoding") != nil || (contentLength ?? 0) > 0
  }

  /// The media type of the body, without its parameters, in lower case.
  package var mediaType: String? {
    value(of: "Content-Type").map { value in
      let type = value.prefix { $0 != ";" }
      return String(type).lowercased().filter { $0 != " " && $0 != "\t" }
    }
  }
}

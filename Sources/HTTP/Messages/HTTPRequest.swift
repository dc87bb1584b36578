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

  /// Distinguishes requests within this process: the method, the target and the body.
  package var fingerprint: Int {
    var hasher = Hasher()
    hasher.combine(method)
    hasher.combine(target)
    hasher.combine(body)
    return hasher.finalize()
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

/// The target in a request's first line: the path in segments, and the query parameters.
package struct RequestTarget: Hashable, Sendable {
  /// Why a target is not valid, in words.
  package struct Mistake: Error, Hashable, Sendable {
    package let message: String
  }

  /// One `name=value` of the query.
  package struct Parameter: Hashable, Sendable {
    package var name: String
    package var value: String
  }

  /// The path's segments, each decoded separately, so `%2F` is not a separator.
  package var path: [String]
  package var query: [Parameter] = []
  /// The host of an absolute target, which overrides the `Host` header.
  package var authority: String?

  /// An empty target.
  static let empty = RequestTarget(path: [])

  private init(path: [String]) { self.path = path }

  /// Parses an encoded target.
  package init(_ text: String) throws(Mistake) {
    var rest = text[...]
    if let scheme = ["http://", "https://"].first(where: { text.lowercased().hasPrefix($0) }) {
      rest = text.dropFirst(scheme.count)
      let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
      authority = String(rest[..<end])
      rest = rest[end...]
      if rest.first != "/" { rest = "/" + rest }
    }
    guard rest.first == "/" else {
      throw Mistake(message: "a path must start with '/'")
    }
    let parts = rest.dropFirst().split(
      separator: "?",
      maxSplits: 1,
      omittingEmptySubsequences: false
    )
    path = []
    for segment in parts[0].split(separator: "/", omittingEmptySubsequences: false) {
      path.append(try Self.decoded(segment, isQuery: false))
    }
    guard parts.count > 1 else { return }
    for pair in parts[1].split(separator: "&") {
      let sides = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      query.append(
        Parameter(
          name: try Self.decoded(sides[0], isQuery: true),
          value: sides.count > 1 ? try Self.decoded(sides[1], isQuery: true) : ""
        )
      )
    }
  }

  private static func decoded(_ text: Substring, isQuery: Bool) throws(Mistake) -> String {
    var bytes: [UInt8] = []
    var rest = text.utf8
    while let byte = rest.popFirst() {
      switch byte {
      case UInt8(ascii: "%"):
        guard let high = rest.popFirst().flatMap(digit), let low = rest.popFirst().flatMap(digit)
        else { throw Mistake(message: "'%' must be followed by two hexadecimal digits") }
        bytes.append(high << 4 | low)
      case UInt8(ascii: "+") where isQuery: bytes.append(UInt8(ascii: " "))
      default: bytes.append(byte)
      }
    }
    guard let decoded = String(validating: bytes, as: UTF8.self) else {
      throw Mistake(message: "the address is not in UTF-8")
    }
    guard !bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw Mistake(message: "the address contains a control character")
    }
    return decoded
  }

  private static func digit(_ byte: UInt8) -> UInt8? {
    Character(Unicode.Scalar(byte)).hexDigitValue.map { UInt8($0) }
  }
}

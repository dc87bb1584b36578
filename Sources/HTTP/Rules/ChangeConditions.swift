// Settle
// SPDX-License-Identifier: Apache-2.0

/// The headers under which a change is executed: once, and not after a time.
package struct ChangeConditions: Hashable, Sendable {
  /// The key under which the request is executed at most once.
  package var idempotencyKey: String?
  /// The last time at which the request may be executed, in milliseconds of the gateway's time.
  package var notAfter: Int64?

  private static let keyHeader = "Idempotency-Key"
  private static let timeHeader = "Settle-Not-After"
  private static let keyLimit = 128

  /// Whether a request has one of the headers, valid or not.
  package static func areStated(in request: HTTPRequest) -> Bool {
    request.headers.contains { $0.isCalled(keyHeader) || $0.isCalled(timeHeader) }
  }

  /// Reads the headers of a request.
  ///
  /// - Throws: 400, if one of them is repeated or not valid.
  package init(_ request: HTTPRequest) throws(Problem) {
    idempotencyKey = try Self.single(Self.keyHeader, of: request)
    if let key = idempotencyKey, !Self.isKey(key) {
      throw Problem(
        400,
        "bad_request",
        "\(Self.keyHeader) has 1 to \(Self.keyLimit) visible characters of ASCII"
      )
    }
    if let text = try Self.single(Self.timeHeader, of: request) {
      guard let time = Int64(text), time >= 0 else {
        throw Problem(
          400,
          "bad_request",
          "\(Self.timeHeader) is a time of the gateway in milliseconds, as in /healthz"
        )
      }
      notAfter = time
    }
  }

  private static func isKey(_ text: String) -> Bool {
    (1...keyLimit).contains(text.utf8.count)
      && text.utf8.allSatisfy { (UInt8(ascii: "!")...UInt8(ascii: "~")).contains($0) }
  }

  private static func single(
    _ name: String,
    of request: HTTPRequest
  ) throws(Problem) -> String? {
    let values = request.values(of: name)
    guard values.count < 2 else {
      throw Problem(400, "bad_request", "there is more than one \(name) header")
    }
    return values.first
  }
}

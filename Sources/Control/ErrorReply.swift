// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values
package import JSON

/// The body of `{"error":{"code":…,"message":…,"line":…}}`.
package struct ErrorReply: Hashable, Sendable {
  /// A short stable word, usually one of ``ErrorCode``.
  package var code: String
  /// A sentence for people.
  package var message: String
  /// The line of the input, counted from 1.
  package var line: Int?

  package init(code: String, message: String, line: Int?) {
    self.code = code
    self.message = message
    self.line = line
  }

  package init(_ code: ErrorCode, _ message: String, line: Int? = nil) {
    self.init(code: code.rawValue, message: message, line: line)
  }

  package init(_ error: GrammarError, line: Int?) {
    self.init(code: error.code, message: error.message, line: line)
  }

  /// Reads the body; `nil` without code and message.
  package init?(_ json: JSONValue) {
    guard let code = json["code"]?.string, let message = json["message"]?.string else {
      return nil
    }
    self.init(code: code, message: message, line: json["line"]?.count)
  }

  package var json: JSONValue {
    .object([
      "code": .string(code), "message": .string(message),
      "line": line.map { .integer(Int64($0)) } ?? .null,
    ])
  }
}

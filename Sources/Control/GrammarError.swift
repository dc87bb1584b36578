// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values
package import JSON

/// Why a line is not valid, with its `id` if that could be read.
package struct GrammarError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A short stable word for programs, usually one of ``ErrorCode``.
  package let code: String
  /// A sentence for people, without a line break.
  package let message: String
  /// The request's `id` exactly as received.
  package let replyID: JSONValue?

  package init(code: String, message: String, id: String?) {
    self.code = code
    self.message = message
    replyID = id.map(JSONValue.string)
  }

  package init(code: ErrorCode, message: String, id: JSONValue?) {
    self.code = code.rawValue
    self.message = message
    replyID = id
  }

  /// The request's `id` as text.
  package var id: String? { replyID.flatMap(ControlRequest.text) }

  package var description: String { message }
}

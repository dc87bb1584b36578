// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// Why a line was not understood; `id` is given back if it could be read.
package struct GrammarError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A short stable word for programs, one of ``ErrorCode`` as a rule.
  package let code: String
  /// A sentence for people, without a line break.
  package let message: String
  /// The request's `id` exactly as it came.
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

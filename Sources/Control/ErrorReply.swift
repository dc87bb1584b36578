// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
internal import Values

/// The body of `{"error":{"code":…,"message":…,"line":…}}`.
package struct ErrorReply: ListedObject, Hashable, Sendable {
  /// A short stable word, usually one of ``ErrorCode``.
  package var code = ""
  /// A sentence for people.
  package var message = ""
  /// The line of the input, counted from 1.
  package var line: Int?

  package init() {}

  package init(_ code: ErrorCode, _ message: String, line: Int? = nil) {
    self.code = code.rawValue
    self.message = message
    self.line = line
  }

  package init(_ error: GrammarError, line: Int?) {
    code = error.code
    message = error.message
    self.line = line
  }

  package mutating func list(_ members: inout MemberList) {
    members.text("code", &code, isNeeded: true)
    members.text("message", &message, isNeeded: true)
    members.count("line", &line)
  }
}

/// Why a line is not valid, with its `id` if that could be read.
package struct GrammarError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A short stable word for programs, usually one of ``ErrorCode``.
  package let code: String
  /// A sentence for people, without a line break.
  package let message: String
  /// The request's `id` exactly as received.
  package let replyID: JSONValue?

  package init(code: ErrorCode, message: String, id: JSONValue?) {
    self.code = code.rawValue
    self.message = message
    replyID = id
  }

  package var description: String { message }
}

/// The codes in `{"error":{"code":…}}`; programs may rely on them.
package enum ErrorCode: String, Hashable, Sendable, CaseIterable {
  /// The line is not JSON, or has a duplicate member.
  case syntax
  /// The line is longer than the limit; the rest of it was skipped.
  case lineTooLong = "line_too_long"
  /// The input ended in the middle of a line.
  case incompleteLine = "incomplete_line"
  case unknownMember = "unknown_member"
  /// A member that the grammar knows, but not for this operation.
  case misplacedMember = "misplaced_member"
  case missingOperation = "missing_operation"
  case severalOperations = "several_operations"
  case missingKey = "missing_key"
  case badType = "bad_type"
  case badValue = "bad_value"
  case badKey = "bad_key"
  /// No device or property has this literal key.
  case unknownKey = "unknown_key"
  /// `wait` is `confirmed` where nothing can confirm; the change was not accepted.
  case cannotConfirm = "cannot_confirm"
  /// The operation does not exist here, such as `watch` in a file of changes.
  case unsupported
  /// A limit is reached, such as the number of pending keys.
  case limit
  /// The configuration files have mistakes; the previous configuration stays in effect.
  case badConfiguration = "bad_configuration"
  /// The gateway is shutting down and accepts no changes.
  case stopping
  /// No gateway of the cluster drives the device at the moment; the change was not accepted.
  case noOwner = "no_owner"
  /// The gateway of the cluster that drives the device ended before it answered: the change may or
  /// may not be accepted.
  case unanswered
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The words that `{"error":{"code":…}}` uses; programs may rely on them.
package enum ErrorCode: String, Hashable, Sendable, CaseIterable {
  /// The line is not JSON, or has a member twice.
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
  /// `wait` asks for `confirmed` where nothing can confirm; the change was not taken.
  case cannotConfirm = "cannot_confirm"
  /// The operation does not exist here, as `watch` in a file of changes.
  case unsupported
  /// A stated limit is reached, as that of pending keys.
  case limit
  /// The configuration on the disk has mistakes; the gateway goes on with what it had.
  case badConfiguration = "bad_configuration"
  /// The gateway is about to end and takes no changes.
  case stopping
}

// Settle
// SPDX-License-Identifier: Apache-2.0

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

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// A row that a restart would send.
struct DiskRow: Hashable, Sendable {
  /// The oldest value that the row may hold.
  var sequence: UInt64
  /// The moment from which a restart sends nothing of the row; `nil` when unknown.
  var expiresAt: Moment?
  /// Whether it may hold an urgent value.
  var isUrgent = false

  func isLive(at now: Moment) -> Bool { expiresAt.map { now < $0 } ?? true }

  /// What is known of a row that was or was not replaced.
  static func either(_ old: DiskRow, _ new: DiskRow) -> DiskRow {
    var expiresAt: Moment?
    if let first = old.expiresAt, let second = new.expiresAt { expiresAt = max(first, second) }
    return DiskRow(
      sequence: min(old.sequence, new.sequence),
      expiresAt: expiresAt,
      isUrgent: old.isUrgent || new.isUrgent
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A mistake that a journal's users or its file could make; the simulation has to find each.
package enum JournalFlaw: CaseIterable, Sendable {
  /// `accepted` is told before the commit.
  case tellsEarly
  /// A commit counts as done when it is written, before it is synced.
  case trustsUnsynced
  /// A row is not replaced by that of a newer value.
  case keepsOlderRow
  /// A row is removed when its value leaves, before the broker acknowledges it.
  case removesAtSending
  /// The row of a sent value is never removed.
  case neverRemoves
  /// A value leaves although a crash would send an older one after it.
  case leavesEarly
  /// What an earlier process left is sent although its time to live is over.
  case replaysExpired
  /// What an earlier process left is sent although a newer value has been accepted since.
  case replaysLate
  /// A stored value gets a new age whenever its row is written.
  case renewsStamps
  /// What is too old after a restart goes without a word.
  case expiresSilently
  /// The row of a cancelled value waits as long as that of a sent one.
  case cancelsLazily
  /// A change is taken although nothing can be written and an older value is on the disk.
  case ignoresRefusal
  /// Values that could not be written over older ones are not dropped.
  case keepsOvertaken
  /// Replies that wait are forgotten when the disk fails.
  case forgetsReplies
  /// A file counts as safe once it was read, though its last changes were never synced.
  case opensUnsynced
}

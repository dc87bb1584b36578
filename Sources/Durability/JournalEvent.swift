// Settle
// SPDX-License-Identifier: Apache-2.0

/// What the journal reports to its owner, in order.
package enum JournalEvent: Hashable, Sendable {
  /// Everything accepted up to this sequence number survives a power cut, was superseded or has
  /// ended: its replies are due.
  case durable(through: UInt64)
  /// Everything up to this number is held in memory only: its replies are due and must say so.
  ///
  /// `overtaken`: keys of which a crash would bring back an older value. Their newer values must
  /// not count as accepted.
  case memoryOnly(through: UInt64, fault: JournalFault, overtaken: [String])
  /// Writing works again.
  case recovered
  /// Send this value of an earlier process once; `remaining` of its time to live is left.
  case replay(JournalEntry, remaining: Duration)
  /// A value of an earlier process that is not sent, and why.
  case expired(JournalEntry, ExpiryReason)
  /// A damaged journal was moved to another name; nothing of it is used.
  case setAside(SetAside)
}

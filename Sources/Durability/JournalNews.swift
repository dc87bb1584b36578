// Settle
// SPDX-License-Identifier: Apache-2.0

/// What the journal has to tell its owner, in order.
package enum JournalNews: Hashable, Sendable {
  /// Everything accepted up to this sequence number survives a power cut, or has been superseded or
  /// finished: its replies are due.
  case durable(through: UInt64)
  /// Everything up to this number is held in memory only: its replies are due and must say so.
  ///
  /// `overtaken`: keys of which a crash would bring back an older value; their newer values must
  /// not count as accepted.
  case memoryOnly(through: UInt64, fault: JournalFault, overtaken: [String])
  /// Writing works again.
  case recovered
  /// A value of an earlier process that is to be sent once; `remaining` of its time to live is left.
  case replay(JournalEntry, remaining: Duration)
  /// A value of an earlier process that is too old, or of an age that nothing can tell.
  case expired(JournalEntry)
  /// A damaged file was found and moved to another name; what it held is not used.
  case setAside(SetAside)
}

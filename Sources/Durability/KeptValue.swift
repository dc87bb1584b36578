// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// A value as the plan keeps it: small, because there is one for every change.
struct KeptValue: Sendable {
  /// A value that an earlier process accepted, as the file holds it.
  final class Stored: Sendable {
    let content: JournalContent
    let stamps: JournalStamps
    let ttl: Duration

    init(content: JournalContent, stamps: JournalStamps, ttl: Duration) {
      self.content = content
      self.stamps = stamps
      self.ttl = ttl
    }
  }

  var sequence: UInt64
  /// Meaningless for a stored value, as is ``expiresAt``.
  var acceptedAt: Moment
  /// The moment from which a restart does not send it.
  var expiresAt: Moment
  var isUrgent = false
  /// `nil`: this process accepted the value, and the owner has it.
  var stored: Stored?

  /// The row that holds the value.
  var row: DiskRow {
    DiskRow(
      sequence: sequence,
      expiresAt: stored == nil ? expiresAt : nil,
      isUrgent: isUrgent
    )
  }

  init(sequence: UInt64, acceptedAt: Moment, expiresAt: Moment, isUrgent: Bool) {
    self.sequence = sequence
    self.isUrgent = isUrgent
    self.acceptedAt = acceptedAt
    self.expiresAt = expiresAt
  }

  init(_ entry: JournalEntry) {
    guard case .stored(let stamps) = entry.origin else {
      preconditionFailure("A file holds values with the stamps of their acceptance.")
    }
    sequence = entry.sequence
    acceptedAt = .zero
    expiresAt = .zero
    stored = Stored(content: entry.content, stamps: stamps, ttl: entry.ttl)
  }

  /// The entry to write; `value` encodes a value that the owner has.
  func entry(of key: String, value: () -> any JournalValue) -> JournalEntry {
    if let stored {
      return JournalEntry(
        key: key,
        sequence: sequence,
        content: stored.content,
        origin: .stored(stored.stamps),
        ttl: stored.ttl
      )
    }
    return JournalEntry(
      key: key,
      sequence: sequence,
      content: .unwritten(value()),
      origin: .accepted(at: acceptedAt),
      ttl: acceptedAt.duration(to: expiresAt)
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

extension JournalPlan {
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
    /// `nil`: this process accepted the value, and the owner has it.
    var stored: Stored?

    /// The row that holds the value.
    var row: DiskRow {
      DiskRow(sequence: sequence, expiresAt: stored == nil ? expiresAt : nil)
    }

    init(sequence: UInt64, acceptedAt: Moment, expiresAt: Moment) {
      self.sequence = sequence
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

  /// What is known of one key.
  struct Slot: Sendable {
    /// The newest accepted value that has not been sent.
    var newest: KeptValue?
    /// An earlier process accepted ``newest``, and the owner has not resumed it.
    var isUnresumed = false
    /// An older value that has not been sent either, and may still be: it waits for its turn while
    /// the newest waits for quiet.
    var earlier: KeptValue?
    /// The value that was sent and is not acknowledged.
    var inFlight: KeptValue?
    /// The row that a crash could bring back.
    var disk: DiskRow?
    /// In ``dirty``.
    var isDirty = false

    /// The value that the disk should hold.
    var wanted: KeptValue? { newest ?? earlier ?? inFlight }
    var isEmpty: Bool {
      newest == nil && earlier == nil && inFlight == nil && disk == nil && !isDirty
    }

    /// Accepts a newer value; the one before stays unless it is `replaced`.
    ///
    /// - Returns: Whether the key was clean.
    mutating func accept(_ value: KeptValue, replacing replaced: UInt64?) -> Bool {
      if earlier == nil, newest?.sequence != replaced { swap(&earlier, &newest) }
      newest = value
      isUnresumed = false
      defer { isDirty = true }
      return !isDirty
    }

    /// A value was sent; nothing older will be.
    mutating func sending(_ sequence: UInt64) {
      if newest?.sequence == sequence {
        inFlight = newest
        newest = nil
        earlier = nil
      } else if earlier?.sequence == sequence {
        inFlight = earlier
        earlier = nil
      }
    }

    /// Removes one value; `false` when it is not there.
    mutating func remove(_ sequence: UInt64) -> Bool {
      if newest?.sequence == sequence {
        newest = nil
        isUnresumed = false
      } else if earlier?.sequence == sequence {
        earlier = nil
      } else if inFlight?.sequence == sequence {
        inFlight = nil
      } else {
        return false
      }
      return true
    }
  }
}

/// The number of a key in one ``JournalPlan``; the file stores its name.
package struct JournalKey: Hashable, Sendable {
  /// Counts from zero.
  package let rawValue: Int32
}

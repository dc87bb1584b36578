// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

extension JournalPlan {
  /// A value as the plan keeps it: small, because there is one for every change.
  struct KeptValue: Sendable {
    /// What comes along with a value that the owner does not keep.
    final class Given: Sendable {
      let content: JournalContent
      /// Of a value that an earlier process has accepted.
      let stored: (stamps: JournalStamps, ttl: Duration)?

      init(content: JournalContent, stored: (stamps: JournalStamps, ttl: Duration)? = nil) {
        self.content = content
        self.stored = stored
      }
    }

    var sequence: UInt64
    var acceptedAt: Moment
    /// From when on a restart does not send it; without meaning where only the file's stamps tell.
    var expiresAt: Moment
    /// `nil`: the owner has it.
    var given: Given?

    init(sequence: UInt64, acceptedAt: Moment, expiresAt: Moment, given: Given?) {
      self.sequence = sequence
      self.acceptedAt = acceptedAt
      self.expiresAt = expiresAt
      self.given = given
    }

    init(_ entry: JournalEntry) {
      sequence = entry.sequence
      switch entry.origin {
      case .accepted(let moment):
        acceptedAt = moment
        expiresAt = moment.advanced(by: entry.ttl)
        given = Given(content: entry.content)
      case .stored(let stamps):
        acceptedAt = .zero
        expiresAt = .zero
        given = Given(content: entry.content, stored: (stamps, entry.ttl))
      }
    }

    /// The row that it becomes.
    var row: DiskRow {
      DiskRow(sequence: sequence, expiresAt: given?.stored == nil ? expiresAt : nil)
    }

    func entry(of key: String, content: JournalContent) -> JournalEntry {
      JournalEntry(
        key: key,
        sequence: sequence,
        content: content,
        origin: given?.stored.map { .stored($0.stamps) } ?? .accepted(at: acceptedAt),
        ttl: given?.stored?.ttl ?? acceptedAt.duration(to: expiresAt)
      )
    }
  }

  /// What is known of one key.
  struct Slot: Sendable {
    /// The newest accepted value that has not been handed to the broker.
    var newest: KeptValue?
    /// An older one that has not left either, and may still: it is on its road while the newest
    /// waits for quiet.
    var earlier: KeptValue?
    /// The value that the broker has not acknowledged yet.
    var underWay: KeptValue?
    var disk: DiskRow?
    /// In ``dirty``.
    var isDirty = false

    /// What the disk should have.
    var wanted: KeptValue? { newest ?? earlier ?? underWay }
    var isEmpty: Bool {
      newest == nil && earlier == nil && underWay == nil && disk == nil && !isDirty
    }

    /// Takes a newer value; the one before stays unless it is `replaced`.
    ///
    /// - Returns: Whether the key was clean.
    mutating func accept(_ value: KeptValue, replacing replaced: UInt64?) -> Bool {
      if earlier == nil, newest?.sequence != replaced { swap(&earlier, &newest) }
      newest = value
      defer { isDirty = true }
      return !isDirty
    }

    /// Notes that a value was handed to the broker.
    mutating func left(_ sequence: UInt64) {
      if newest?.sequence == sequence {
        underWay = newest
        newest = nil
        earlier = nil  // Nothing older may follow.
      } else if earlier?.sequence == sequence {
        underWay = earlier
        earlier = nil
      }
    }

    /// Drops one value; `false` when there is none such.
    mutating func drop(_ sequence: UInt64) -> Bool {
      if newest?.sequence == sequence {
        newest = nil
      } else if earlier?.sequence == sequence {
        earlier = nil
      } else if underWay?.sequence == sequence {
        underWay = nil
      } else {
        return false
      }
      return true
    }

    /// Drops all values up to one; `false` when there were none.
    mutating func drop(through sequence: UInt64) -> Bool {
      var hasDropped = false
      if let value = newest, value.sequence <= sequence {
        newest = nil
        hasDropped = true
      }
      if let value = earlier, value.sequence <= sequence {
        earlier = nil
        hasDropped = true
      }
      if let value = underWay, value.sequence <= sequence {
        underWay = nil
        hasDropped = true
      }
      return hasDropped
    }
  }
}

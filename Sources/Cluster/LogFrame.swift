// Settle
// SPDX-License-Identifier: Apache-2.0

package import Durability
import LastOut

/// One entry in the log of a partition: the log is read from its newest snapshot, and what is left
/// after the last frame is what a new owner must send.
package struct LogFrame: Hashable, Sendable {
  /// A value that is accepted and not sent.
  package struct Row: Hashable, Sendable {
    package var key: String
    /// Opaque here.
    package var content: JournalContent
    /// How long before this frame was written the value was accepted.
    package var age: Duration
    /// How long after its acceptance it may be sent.
    package var ttl: Duration

    package init(key: String, content: JournalContent, age: Duration, ttl: Duration) {
      self.key = key
      self.content = content
      self.age = age
      self.ttl = ttl
    }
  }

  package enum Kind: Hashable, Sendable {
    /// A new owner; frames of earlier ones are refused from here on.
    case claim(member: String)
    /// What has changed.
    case changes
    /// One of `count` frames that together replace everything before the first of them.
    case snapshot(part: Int, count: Int)
  }

  package var kind: Kind
  /// The owner's.
  package var epoch: UInt64
  /// Counts the frames of the log, from 1.
  package var number: UInt64
  /// Where the newest complete snapshot before this frame begins; 0 for none.
  ///
  /// Nobody reads what is before it. After an election, it may have another number.
  package var base: UInt64
  package var puts: [Row]
  package var removals: [String]

  package init(
    kind: Kind,
    epoch: UInt64,
    number: UInt64 = 0,
    base: UInt64 = 0,
    puts: [Row] = [],
    removals: [String] = []
  ) {
    self.kind = kind
    self.epoch = epoch
    self.number = number
    self.base = base
    self.puts = puts
    self.removals = removals
  }
}

/// A frame as the engine has it.
package struct StoredFrame: Hashable, Sendable {
  /// Its place in the engine's stream, from 1.
  package var sequence: UInt64
  /// When it was stored, in nanoseconds by the engine's clock.
  package var storedAt: Int64
  package var frame: LogFrame

  /// What the next one follows.
  var asPredecessor: Predecessor { Predecessor(revision: sequence, count: frame.number) }

  package init(sequence: UInt64, storedAt: Int64, frame: LogFrame) {
    self.sequence = sequence
    self.storedAt = storedAt
    self.frame = frame
  }
}

/// What a log holds after some of its frames.
package struct LogContents: Sendable {
  /// A value with the place of the frame that has it.
  package struct Held: Sendable {
    package var row: LogFrame.Row
    package var storedAt: Int64
    /// Orders the values of a log.
    package var place: Int
  }

  package private(set) var rows: [String: Held] = [:]
  private var count = 0
  /// The frames of a snapshot that is not complete; a crash may have cut it short.
  private var parts: [StoredFrame] = []
  /// Whether there was a complete snapshot: what is before it does not matter.
  private(set) var hasSnapshot = false

  package init() {}

  /// The values in the order in which they were stored.
  package var ordered: [Held] { rows.values.sorted { $0.place < $1.place } }

  /// Takes the next frame.
  package mutating func append(_ stored: StoredFrame) {
    guard case .snapshot(let part, let count) = stored.frame.kind else {
      parts = []
      return apply(stored)
    }
    if part == 0 { parts = [] }
    guard part == parts.count else { return parts = [] }
    parts.append(stored)
    guard parts.count == count else { return }
    hasSnapshot = true
    rows = [:]
    for part in parts { apply(part) }
    parts = []
  }

  private mutating func apply(_ stored: StoredFrame) {
    for key in stored.frame.removals { rows[key] = nil }
    for row in stored.frame.puts {
      count += 1
      rows[row.key] = Held(row: row, storedAt: stored.storedAt, place: count)
    }
  }
}

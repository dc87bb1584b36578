// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// The number of a key in one ``JournalPlan``; the file stores its name.
package struct JournalKey: Hashable, Sendable {
  /// Counts from zero.
  package let rawValue: Int32
}

/// The keys of a journal with what is known of each, and those that wait for a commit.
struct JournalKeyTable: Sendable {
  /// The keys' names by number.
  private(set) var names: [String] = []
  private var numbers: [String: JournalKey] = [:]
  private var slots: [JournalSlot] = []
  /// Keys whose row may differ from the wanted one.
  private var dirty: [JournalKey] = []

  /// The number of a key, assigned at its first mention.
  mutating func number(of name: String) -> JournalKey {
    if let known = numbers[name] { return known }
    let key = JournalKey(rawValue: Int32(slots.count))
    numbers[name] = key
    names.append(name)
    slots.append(JournalSlot())
    return key
  }

  /// The number of a key that was mentioned before.
  func find(_ name: String) -> JournalKey? { numbers[name] }

  func name(of key: JournalKey) -> String { names[Int(key.rawValue)] }

  subscript(key: JournalKey) -> JournalSlot {
    _read { yield slots[Int(key.rawValue)] }
    _modify { yield &slots[Int(key.rawValue)] }
  }

  var all: some Sequence<JournalKey> {
    slots.indices.lazy.map { JournalKey(rawValue: Int32($0)) }
  }

  /// Whether a key waits for a commit.
  var hasDirty: Bool { !dirty.isEmpty }

  /// Records that a key's row may differ from the wanted one.
  mutating func markDirty(_ key: JournalKey) {
    guard !self[key].isDirty else { return }
    self[key].isDirty = true
    dirty.append(key)
  }

  /// Removes and returns the keys that wait for a commit.
  mutating func dequeueDirty() -> [JournalKey] {
    let keys = exchange(&dirty, with: [])
    for key in keys { self[key].isDirty = false }
    return keys
  }

  /// Records that the file has no row.
  mutating func removeRows() {
    for place in slots.indices { slots[place].disk = nil }
  }
}

/// What is known of one key.
struct JournalSlot: Sendable {
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
  /// Whether an urgent value has ended that a file may hold which was not read yet.
  var endsUrgent = false
  /// Whether the row may differ from the wanted one, and the key waits for a commit.
  var isDirty = false

  /// The value that the disk should hold.
  var wanted: KeptValue? { newest ?? earlier ?? inFlight }
  var isEmpty: Bool {
    newest == nil && earlier == nil && inFlight == nil && disk == nil && !isDirty
  }

  /// Accepts a newer value; the one before stays unless it is `replaced`.
  mutating func accept(_ value: KeptValue, replacing replaced: UInt64?) {
    if earlier == nil, newest?.sequence != replaced { swap(&earlier, &newest) }
    newest = value
    isUnresumed = false
  }

  /// A value was sent; nothing older will be.
  mutating func sending(_ sequence: UInt64) {
    if newest?.sequence == sequence {
      inFlight = newest.take()
      earlier = nil
    } else if earlier?.sequence == sequence {
      inFlight = earlier.take()
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

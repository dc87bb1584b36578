// Settle
// SPDX-License-Identifier: Apache-2.0

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
    var keys: [JournalKey] = []
    swap(&keys, &dirty)
    for key in keys { self[key].isDirty = false }
    return keys
  }

  /// Records that the file has no row.
  mutating func removeRows() {
    for place in slots.indices { slots[place].disk = nil }
  }
}

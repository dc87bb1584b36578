// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Deadlines beside the queue's own, at most one of each kind a key.
///
/// What is set again moves, and what is removed is gone at once, so nothing stale ever wakes
/// anybody and the heap never outgrows the keys. O(log n) per operation.
struct DeadlineHeap {
  enum Kind: Int {
    /// A value has waited too long for an absent party.
    case expiry
    /// The device should have shown the value.
    case confirmation
    /// Steps have waited too long for the device's state.
    case heldStep

    static let count = 3
  }

  struct Entry {
    var at: Moment
    var key: KeyIndex
    var kind: Kind
  }

  private var entries: [Entry] = []
  /// Where the entry of each key and kind is; -1 for none.
  private var positions: [Int32]

  init(keys: Int) {
    positions = Array(repeating: -1, count: keys * Kind.count)
  }

  /// Makes room for more keys.
  mutating func extend(toKeys keys: Int) {
    positions += Array(repeating: -1, count: max(0, keys * Kind.count - positions.count))
  }

  var first: Entry? { entries.first }

  var count: Int { entries.count }

  /// Sets or moves a deadline.
  mutating func set(_ kind: Kind, of key: KeyIndex, at moment: Moment) {
    let known = Int(positions[Self.number(kind, key)])
    if known >= 0 {
      entries[known].at = moment
      settle(known)
    } else {
      entries.append(Entry(at: moment, key: key, kind: kind))
      note(entries.count - 1)
      settle(entries.count - 1)
    }
  }

  /// Drops a deadline, if there is one.
  mutating func remove(_ kind: Kind, of key: KeyIndex) {
    let place = Int(positions[Self.number(kind, key)])
    guard place >= 0 else { return }
    positions[Self.number(kind, key)] = -1
    let last = entries.removeLast()
    guard place < entries.count else { return }
    entries[place] = last
    note(place)
    settle(place)
  }

  private static func number(_ kind: Kind, _ key: KeyIndex) -> Int {
    Int(key.rawValue) * Kind.count + kind.rawValue
  }

  private mutating func note(_ place: Int) {
    positions[Self.number(entries[place].kind, entries[place].key)] = Int32(place)
  }

  /// Brings the entry at `start` to where it belongs, up or down.
  private mutating func settle(_ start: Int) {
    var place = start
    while place > 0, entries[place].at < entries[(place - 1) / 2].at {
      swap(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
    while true {
      var smallest = place
      if let left = child(2 * place + 1), entries[left].at < entries[smallest].at {
        smallest = left
      }
      if let right = child(2 * place + 2), entries[right].at < entries[smallest].at {
        smallest = right
      }
      guard smallest != place else { return }
      swap(place, smallest)
      place = smallest
    }
  }

  private func child(_ place: Int) -> Int? { place < entries.count ? place : nil }

  private mutating func swap(_ left: Int, _ right: Int) {
    entries.swapAt(left, right)
    note(left)
    note(right)
  }
}

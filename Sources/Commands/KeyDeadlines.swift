// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Deadlines, at most one per key: a binary heap that knows where each key is.
///
/// A deadline that is set again moves, and one that is removed is gone at once, so no stale entry
/// causes a wake-up and the heap never outgrows the keys. O(log n) per operation.
///
/// The heaps of the library cannot stand in for it: the queue's keeps positions in its own slots
/// and corrects late entries only when they come up, and the timer thread's numbers are sparse.
struct KeyDeadlines {
  struct Entry {
    var at: Moment
    var key: KeyIndex
  }

  private var entries: [Entry] = []
  /// The position of each key's entry; -1 for none.
  private var positions: LazyArray<Int32>

  init(keys: Int) {
    positions = LazyArray(repeating: -1, count: keys)
  }

  /// Makes room for more keys.
  mutating func extend(keys: Int) { positions.extend(to: keys) }

  /// The earliest deadline.
  var first: Moment? { entries.first?.at }

  var count: Int { entries.count }

  /// The deadline of `key`.
  subscript(key: KeyIndex) -> Moment? {
    let place = Int(positions[key])
    return place < 0 ? nil : entries[place].at
  }

  /// Sets or moves the deadline of `key`.
  mutating func set(_ key: KeyIndex, at moment: Moment) {
    let known = Int(positions[key])
    if known >= 0 {
      entries[known].at = moment
      sift(known)
    } else {
      entries.append(Entry(at: moment, key: key))
      recordPosition(entries.count - 1)
      sift(entries.count - 1)
    }
  }

  /// Removes the deadline of `key`, if it has one.
  mutating func remove(_ key: KeyIndex) {
    let place = Int(positions[key])
    guard place >= 0 else { return }
    positions[key] = -1
    let last = entries.removeLast()
    guard place < entries.count else { return }
    entries[place] = last
    recordPosition(place)
    sift(place)
  }

  /// Removes the earliest deadline if it has passed.
  ///
  /// - Returns: Its key.
  mutating func popFirst(at now: Moment) -> KeyIndex? {
    guard let first = entries.first, first.at <= now else { return nil }
    remove(first.key)
    return first.key
  }

  private mutating func recordPosition(_ place: Int) {
    positions[entries[place].key] = Int32(place)
  }

  /// Moves the entry at `start` up or down to where it belongs.
  private mutating func sift(_ start: Int) {
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
    recordPosition(left)
    recordPosition(right)
  }
}

extension Moment {
  /// The earlier of two moments that may not exist.
  package static func earlier(_ one: Moment?, _ other: Moment?) -> Moment? {
    guard let one, let other else { return one ?? other }
    return min(one, other)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Deadlines beside the queue's own: expiry, confirmation, held steps. Stale entries are recognised
/// by their stamp and dropped when they reach the top. O(log n) per operation.
struct DeadlineHeap {
  enum Kind {
    case expiry
    case confirmation
    case heldStep
  }

  struct Entry {
    var at: Moment
    var key: KeyIndex
    var kind: Kind
    var stamp: UInt32
  }

  private var entries: [Entry] = []

  var first: Entry? { entries.first }

  mutating func insert(_ entry: Entry) {
    entries.append(entry)
    var child = entries.count - 1
    while child > 0 {
      let parent = (child - 1) / 2
      guard entries[child].at < entries[parent].at else { break }
      entries.swapAt(child, parent)
      child = parent
    }
  }

  @discardableResult
  mutating func removeFirst() -> Entry? {
    guard let first = entries.first else { return nil }
    let last = entries.removeLast()
    guard !entries.isEmpty else { return first }
    entries[0] = last
    var parent = 0
    while true {
      var smallest = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < entries.count && entries[child].at < entries[smallest].at {
        smallest = child
      }
      guard smallest != parent else { return first }
      entries.swapAt(parent, smallest)
      parent = smallest
    }
  }
}

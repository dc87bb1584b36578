// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Planned events in order of time; equal times keep the order of planning.
struct Timeline<Item> {
  struct Entry {
    let at: Moment
    let item: Item
  }

  /// The latest first, so that the next one is cheap to remove.
  private var entries: [Entry] = []

  var next: Entry? { entries.last }
  var isEmpty: Bool { entries.isEmpty }

  mutating func plan(_ item: Item, at moment: Moment) {
    var place = entries.count
    while place > 0, entries[place - 1].at <= moment { place -= 1 }
    entries.insert(Entry(at: moment, item: item), at: place)
  }

  func contains(where matches: (Item) -> Bool) -> Bool { entries.contains { matches($0.item) } }

  mutating func removeNext() -> Entry? { entries.popLast() }

  /// Removes and returns some items, the earliest first.
  mutating func remove(where isRemoved: (Item) -> Bool) -> [Item] {
    let found = entries.filter { isRemoved($0.item) }.map(\.item)
    entries.removeAll { isRemoved($0.item) }
    return found.reversed()
  }
}

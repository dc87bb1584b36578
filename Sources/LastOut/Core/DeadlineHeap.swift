// Settle
// SPDX-License-Identifier: Apache-2.0

/// The deadlines that are in no list: a binary heap that stores the position in each slot.
///
/// An entry may be earlier than its slot's deadline, never later: moving a deadline back is one
/// store in the slot, and the entry is corrected when it reaches the top.
@usableFromInline
@frozen
struct DeadlineHeap: ~Copyable {
  @usableFromInline
  @frozen
  struct Entry {
    @usableFromInline var due: UInt64
    @usableFromInline var slot: Int32

    @inlinable
    init(due: UInt64, slot: Int32) {
      self.due = due
      self.slot = slot
    }
  }

  @usableFromInline var entries = Buffer<Entry>(capacity: 8)

  @inlinable init() {}

  @inlinable var top: Entry? { entries.count > 0 ? entries[0] : nil }

  @inlinable
  mutating func push<Value>(_ slot: Int32, due: UInt64, in slab: inout Slab<Value>) {
    entries.append(Entry(due: due, slot: slot))
    siftUp(entries.count - 1, in: &slab)
  }

  /// Moves the slot's entry forward; a later `due` is left for ``correctTop(due:in:)``.
  @inlinable
  mutating func advance<Value>(_ slot: Int32, due: UInt64, in slab: inout Slab<Value>) {
    let position = Int(slab[slot].previous)
    guard due < entries[position].due else { return }
    entries[position].due = due
    siftUp(position, in: &slab)
  }

  /// Updates the first entry to the current deadline of its slot.
  @inlinable
  mutating func correctTop<Value>(due: UInt64, in slab: inout Slab<Value>) {
    entries[0].due = due
    siftDown(0, in: &slab)
  }

  @inlinable
  mutating func remove<Value>(_ slot: Int32, in slab: inout Slab<Value>) {
    let position = Int(slab[slot].previous)
    let last = entries.removeLast()
    guard position < entries.count else { return }
    let isEarlier = last.due < entries[position].due
    entries[position] = last
    if isEarlier { siftUp(position, in: &slab) } else { siftDown(position, in: &slab) }
  }

  @inlinable
  mutating func siftUp<Value>(_ start: Int, in slab: inout Slab<Value>) {
    let entry = entries[start]
    var position = start
    while position > 0 {
      let parent = (position - 1) / 2
      guard entry.due < entries[parent].due else { break }
      place(entries[parent], at: position, in: &slab)
      position = parent
    }
    place(entry, at: position, in: &slab)
  }

  @inlinable
  mutating func siftDown<Value>(_ start: Int, in slab: inout Slab<Value>) {
    let entry = entries[start]
    var position = start
    while true {
      var child = 2 * position + 1
      guard child < entries.count else { break }
      if child + 1 < entries.count, entries[child + 1].due < entries[child].due { child += 1 }
      guard entries[child].due < entry.due else { break }
      place(entries[child], at: position, in: &slab)
      position = child
    }
    place(entry, at: position, in: &slab)
  }

  @inlinable
  mutating func place<Value>(_ entry: Entry, at position: Int, in slab: inout Slab<Value>) {
    entries[position] = entry
    slab[entry.slot].previous = Int32(truncatingIfNeeded: position)
  }
}

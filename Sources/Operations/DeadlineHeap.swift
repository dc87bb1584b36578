// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Slots ordered by deadline: a binary heap that knows where each slot stands.
struct DeadlineHeap {
  /// One entry per slot; `position` is its place in `order`, negative while it has no deadline.
  private struct Entry {
    var deadline: Moment
    var position: Int
  }

  private var entries: [Entry] = []
  private var free: [Int] = []
  /// Slots, each not later than its two children.
  private var order: [Int] = []

  /// The slot with the earliest deadline.
  var first: (slot: Int, deadline: Moment)? {
    order.first.map { ($0, entries[$0].deadline) }
  }

  mutating func makeSlot() -> Int {
    if let slot = free.popLast() { return slot }
    entries.append(Entry(deadline: .zero, position: -1))
    return entries.count - 1
  }

  /// Gives a slot back; it must not be used afterwards.
  mutating func freeSlot(_ slot: Int) {
    remove(slot)
    free.append(slot)
  }

  func deadline(of slot: Int) -> Moment? {
    entries[slot].position >= 0 ? entries[slot].deadline : nil
  }

  /// Sets or moves a slot's deadline, in O(log n).
  mutating func set(_ slot: Int, to deadline: Moment) {
    entries[slot].deadline = deadline
    if entries[slot].position < 0 {
      entries[slot].position = order.count
      order.append(slot)
    }
    restore(at: entries[slot].position)
  }

  mutating func remove(_ slot: Int) {
    let position = entries[slot].position
    guard position >= 0 else { return }
    entries[slot].position = -1
    let last = order.removeLast()
    guard last != slot else { return }
    order[position] = last
    entries[last].position = position
    restore(at: position)
  }

  /// The slots due at `now`, earliest first.
  func due(at now: Moment) -> [Int] {
    guard let first, first.deadline <= now else { return [] }
    // Mostly it is one: neither of its two children is due.
    if order.dropFirst().prefix(2).allSatisfy({ entries[$0].deadline > now }) {
      return [first.slot]
    }
    return allDue(at: now)
  }

  private func allDue(at now: Moment) -> [Int] {
    order.filter { entries[$0].deadline <= now }
      .sorted { entries[$0].deadline < entries[$1].deadline }
  }

  private mutating func restore(at start: Int) {
    var position = start
    while position > 0, isEarlier(position, than: (position - 1) / 2) {
      exchange(position, (position - 1) / 2)
      position = (position - 1) / 2
    }
    while let child = earlierChild(of: position), isEarlier(child, than: position) {
      exchange(position, child)
      position = child
    }
  }

  private func earlierChild(of position: Int) -> Int? {
    let left = 2 * position + 1
    guard left < order.count else { return nil }
    return left + 1 < order.count && isEarlier(left + 1, than: left) ? left + 1 : left
  }

  private func isEarlier(_ left: Int, than right: Int) -> Bool {
    entries[order[left]].deadline < entries[order[right]].deadline
  }

  private mutating func exchange(_ left: Int, _ right: Int) {
    order.swapAt(left, right)
    entries[order[left]].position = left
    entries[order[right]].position = right
  }
}

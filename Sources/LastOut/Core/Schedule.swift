// Settle
// SPDX-License-Identifier: Apache-2.0

/// The slots of the active keys, and the order in which their pending values are due.
///
/// It owns a slot's value, its phase and every link of it. ``LastOutCore`` decides what a change
/// means: when a burst starts, how long it lasts, and which rule it follows.
@usableFromInline
@frozen
struct Schedule<Value>: ~Copyable {
  @usableFromInline var slab: Slab<Value>
  @usableFromInline var lists = DeadlineLists()
  @usableFromInline var heap = DeadlineHeap()
  /// Slots that are ready to run, in the order in which they became due.
  @usableFromInline var ready = SlotList()
  /// Slots with neither a value nor a run, whose burst may still be open.
  @usableFromInline var lingering = SlotList()
  /// The number of slots with a pending value.
  @usableFromInline var pendingCount = 0

  @inlinable
  init(capacity: Int) {
    slab = Slab(capacity: capacity)
  }

  @inlinable
  subscript(index: Int32) -> Slot<Value> {
    unsafeAddress { unsafe UnsafePointer(slab.slots.address(of: Int(index))) }
    unsafeMutableAddress { unsafe slab.slots.address(of: Int(index)) }
  }

  // MARK: Values

  /// Makes `value` the pending value of a slot and counts it; returns the one it replaces.
  @inlinable
  @inline(__always)
  mutating func exchange(_ value: consuming Value, in index: Int32) -> Value? {
    if slab[index].isPending { slab[index].collapsed &+= 1 } else { pendingCount += 1 }
    return slab[index].exchange(value)
  }

  /// Removes the pending value of a slot, which is in no list afterwards.
  @inlinable
  @inline(__always)
  mutating func removeValue(of index: Int32) -> Value? {
    // The most frequent case is inlined.
    if slab[index].phase == .quiet { unlinkFromQuiet(index) } else { unlink(index) }
    unlinkMaxWait(index)
    slab[index].phase = .running
    slab[index].isUrgent = false
    slab[index].collapsed = 0
    let value = slab[index].value.take()
    if value != nil { pendingCount -= 1 }
    return value
  }

  // MARK: Deadlines

  /// When the pending value of a slot is due.
  @inlinable
  func due(of index: Int32) -> UInt64 {
    guard slab[index].phase == .quiet else { return slab.extras[index].due }
    let list = slab[index].maxWaitList
    let quietEnd = slab[index].quietEnd
    return list < 0
      ? quietEnd : min(quietEnd, slab[index].waitStart.saturatingAdd(lists[list].span))
  }

  /// The next slot whose value is due at `now`; due values of running keys wait for the end of the
  /// run.
  @inlinable
  @inline(__always)
  mutating func nextDue(at now: UInt64) -> Int32? {
    if ready.head >= 0 { return ready.head }
    for number in 0..<lists.count {
      if let index = nextQuiet(in: number, at: now) { return index }
      if let index = nextMaxWait(in: number, at: now) { return index }
    }
    return nextInHeap(at: now)
  }

  /// The oldest change of a list, if its quiet period is over.
  @inlinable
  @inline(__always)
  mutating func nextQuiet(in list: Int, at now: UInt64) -> Int32? {
    while true {
      let index = lists[list].quiet.head
      guard index >= 0, slab[index].quietEnd <= now else { return nil }
      if !deferIfRunning(index) { return index }
    }
  }

  /// The slot of a list that has waited the longest, if its value has waited for `maxWait`.
  @inlinable
  mutating func nextMaxWait(in list: Int, at now: UInt64) -> Int32? {
    while true {
      let index = lists[list].maxWait.head
      guard index >= 0, slab[index].waitStart.saturatingAdd(lists[list].span) <= now else {
        return nil
      }
      if slab[index].phase != .quiet {
        unlinkMaxWait(index)
      } else if !deferIfRunning(index) {
        return index
      }
    }
  }

  /// The slot at the top of the heap, if its value is due.
  @inlinable
  mutating func nextInHeap(at now: UInt64) -> Int32? {
    while let top = heap.top, top.due <= now {
      let due = due(of: top.slot)
      if due > top.due {
        heap.correctTop(due: due, in: &slab)
      } else if !deferIfRunning(top.slot) {
        return top.slot
      }
    }
    return nil
  }

  /// The earliest time at which ``nextDue(at:)`` may return a slot; `nil` if none waits for time.
  @inlinable
  var nextDeadline: UInt64? {
    if pendingCount == 0 { return nil }
    if ready.head >= 0 { return due(of: ready.head) }
    var earliest = UInt64.max
    var isWaiting = false
    for number in 0..<lists.count {
      let quiet = lists[number].quiet.head
      if quiet >= 0 {
        isWaiting = true
        earliest = min(earliest, slab[quiet].quietEnd)
      }
      let longest = firstPending(inMaxWaitOf: number)
      if longest >= 0 {
        earliest = min(earliest, slab[longest].waitStart.saturatingAdd(lists[number].span))
      }
    }
    if let top = heap.top {
      isWaiting = true
      earliest = min(earliest, top.due)
    }
    return isWaiting ? earliest : nil
  }

  /// The first slot of a `maxWait` list with a pending value, or the eighth slot; -1 for none.
  ///
  /// Slots without a pending value stay in the list until their burst ends.
  @inlinable
  func firstPending(inMaxWaitOf list: Int) -> Int32 {
    var index = lists[list].maxWait.head
    for _ in 0..<8 {
      guard index >= 0, slab[index].phase != .quiet else { break }
      index = slab.extras[index].next
    }
    return index
  }

  // MARK: Keys

  /// The keys of the slots that satisfy a condition, in unspecified order.
  @inlinable
  func keys(where isIncluded: (borrowing Slot<Value>) -> Bool) -> [KeyIndex] {
    var keys: [KeyIndex] = []
    for index in 0..<slab.slots.count where isIncluded(slab.slots[index]) {
      keys.append(KeyIndex(slab.slots[index].key))
    }
    return keys
  }

  /// The keys with a pending value; keys with the same quiet period are in the order of their last
  /// changes.
  @inlinable
  func pendingKeysInOrder() -> [KeyIndex] {
    var keys: [KeyIndex] = []
    keys.reserveCapacity(pendingCount)
    for number in 0..<lists.count {
      var index = lists[number].quiet.head
      while index >= 0 {
        keys.append(KeyIndex(slab[index].key))
        index = slab[index].next
      }
    }
    guard keys.count < pendingCount else { return keys }
    return keys + self.keys { $0.isPending && $0.phase != .quiet }
  }
}

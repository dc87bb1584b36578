// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// The earliest moment at which ``nextRun(at:)`` may have something; `nil` when nothing waits for
  /// time.
  ///
  /// It is exact for keys that wait for quiet. With changes that carried their own delay, or behind
  /// a burst that `maxWait` has just served, it may be early, never late.
  @inlinable
  package var nextDeadline: Moment? {
    if pendingCount == 0 { return nil }
    if ready.head >= 0 { return Moment(nanoseconds: due(of: ready.head)) }
    var earliest = UInt64.max
    var isWaiting = false
    for number in 0..<lists.count {
      let quiet = lists[number].quiet.head
      if quiet >= 0 {
        isWaiting = true
        earliest = min(earliest, slab[quiet].quietEnd)
      }
      let base = firstWaitingBase(of: number)
      if base >= 0 {
        earliest = min(earliest, slab[base].base.saturatingAdd(lists[number].span))
      }
    }
    if let top = heap.top {
      isWaiting = true
      earliest = min(earliest, top.due)
    }
    return isWaiting ? Moment(nanoseconds: earliest) : nil
  }

  /// The first slot of a base list that has something pending, or the eighth; -1 for none.
  ///
  /// Slots whose value has just left stay in the list until their burst ends.
  @inlinable
  func firstWaitingBase(of number: Int) -> Int32 {
    var index = lists[number].base.head
    for _ in 0..<8 {
      guard index >= 0, slab[index].phase != .quiet else { break }
      index = slab.extras[index].next
    }
    return index
  }

  /// How many keys have a pending value.
  @inlinable package var pendingCount: Int { pendingSlots }

  /// Whether a run of `key` has started and not ended.
  @inlinable
  package func isRunning(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].isRunning
  }

  /// Whether a value of `key` waits.
  @inlinable
  package func isPending(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].isPending
  }

  /// What waits for `key`, if anything.
  @inlinable
  package func pending(_ key: KeyIndex) -> Pending? {
    let index = slot(of: key)
    guard index >= 0, let value = slab[index].value else { return nil }
    return Pending(
      value: value,
      collapsed: Int(slab[index].collapsed),
      due: Moment(nanoseconds: due(of: index)),
      isMarkedDue: slab[index].phase == .blocked
    )
  }

  /// The keys with a pending value, in no promised order.
  ///
  /// Takes time in proportion to the keys that were ever active at once.
  @inlinable
  package func pendingKeys() -> [KeyIndex] {
    var keys: [KeyIndex] = []
    keys.reserveCapacity(pendingCount)
    for index in 0..<slab.slots.count where slab.slots[index].isPending {
      keys.append(KeyIndex(slab.slots[index].key))
    }
    return keys
  }

  /// The keys with a pending value, those that wait for the same quiet period in the order of their
  /// last changes.
  ///
  /// Takes time in proportion to the keys that were ever active at once.
  @inlinable
  package func pendingKeysInOrder() -> [KeyIndex] {
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
    for index in 0..<slab.slots.count
    where slab.slots[index].isPending && slab.slots[index].phase != .quiet {
      keys.append(KeyIndex(slab.slots[index].key))
    }
    return keys
  }

  /// Whether the value of `key` should have left before a change that comes at `now`.
  @inlinable
  @inline(__always)
  package func isLate(_ key: KeyIndex, at now: Moment) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].isPending && due(of: index) <= max(now.nanoseconds, latest)
  }

  /// When the pending value of `key` leaves, in nanoseconds; `nil` if it waits for no time.
  @inlinable
  @inline(__always)
  package func deadline(of key: KeyIndex) -> UInt64? {
    let index = slot(of: key)
    guard index >= 0, slab[index].phase == .quiet || slab[index].phase == .heaped else {
      return nil
    }
    return due(of: index)
  }

  /// Whether something leaves without waiting for time.
  @inlinable package var hasReady: Bool { ready.head >= 0 }

  /// Whether the value of `key` leaves without waiting for time or a run.
  @inlinable
  package func isReady(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].phase == .ready
  }

  /// Whether nothing is known of `key` but its name: it is idle and has the default policy.
  @usableFromInline
  package func isForgettable(_ key: KeyIndex) -> Bool {
    let position = position(of: key)
    return position >= entries.count
      || entries[position].slot < 0 && entries[position].rule == 0
  }

  /// The keys that run, in no promised order.
  ///
  /// Takes time in proportion to the keys that were ever active at once.
  @inlinable
  package func runningKeys() -> [KeyIndex] {
    var keys: [KeyIndex] = []
    for index in 0..<slab.slots.count
    where slab.slots[index].isRunning && slab.slots[index].phase != .free {
      keys.append(KeyIndex(slab.slots[index].key))
    }
    return keys
  }

  /// For how many keys there is memory beyond their index entry.
  @usableFromInline
  package var slotCount: Int { slab.slots.count }
}

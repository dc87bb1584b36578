// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// The earliest time at which ``nextRun(at:)`` may return a run; `nil` if no value waits for time.
  ///
  /// It is exact for keys that wait for quiet. It may be early, never late, for changes with their own
  /// delay, or after a run because of `maxWait`.
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

  /// The first slot of a base list with a pending value, or the eighth slot; -1 for none.
  ///
  /// Slots without a pending value stay in the list until their burst ends.
  @inlinable
  func firstWaitingBase(of number: Int) -> Int32 {
    var index = lists[number].base.head
    for _ in 0..<8 {
      guard index >= 0, slab[index].phase != .quiet else { break }
      index = slab.extras[index].next
    }
    return index
  }

  /// The number of keys with a pending value.
  @inlinable package var pendingCount: Int { pendingSlots }

  /// Whether `key` is running.
  @inlinable
  package func isRunning(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].isRunning
  }

  /// Whether `key` has a pending value.
  @inlinable
  package func isPending(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].isPending
  }

  /// The pending value of `key`.
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

  /// The keys with a pending value, in unspecified order.
  ///
  /// Linear in the largest number of keys that were active at once.
  @inlinable
  package func pendingKeys() -> [KeyIndex] {
    var keys: [KeyIndex] = []
    keys.reserveCapacity(pendingCount)
    for index in 0..<slab.slots.count where slab.slots[index].isPending {
      keys.append(KeyIndex(slab.slots[index].key))
    }
    return keys
  }

  /// The keys with a pending value; keys with the same quiet period are in the order of their last
  /// changes.
  ///
  /// Linear in the largest number of keys that were active at once.
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

  /// Whether the value of `key` was due before a change at `now`.
  @inlinable
  @inline(__always)
  package func isLate(_ key: KeyIndex, at now: Moment) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].isPending && due(of: index) <= max(now.nanoseconds, latest)
  }

  /// When the pending value of `key` is due, in nanoseconds; `nil` if it does not wait for time.
  @inlinable
  @inline(__always)
  package func deadline(of key: KeyIndex) -> UInt64? {
    let index = slot(of: key)
    guard index >= 0, slab[index].phase == .quiet || slab[index].phase == .heaped else {
      return nil
    }
    return due(of: index)
  }

  /// Whether any value is ready to run.
  @inlinable package var hasReady: Bool { ready.head >= 0 }

  /// Whether the value of `key` is ready to run.
  @inlinable
  package func isReady(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && slab[index].phase == .ready
  }

  /// Whether `key` has no state: it is idle and has the default policy.
  @usableFromInline
  package func isForgettable(_ key: KeyIndex) -> Bool {
    let position = position(of: key)
    return position >= entries.count
      || entries[position].slot < 0 && entries[position].rule == 0
  }

  /// The running keys, in unspecified order.
  ///
  /// Linear in the largest number of keys that were active at once.
  @inlinable
  package func runningKeys() -> [KeyIndex] {
    var keys: [KeyIndex] = []
    for index in 0..<slab.slots.count
    where slab.slots[index].isRunning && slab.slots[index].phase != .free {
      keys.append(KeyIndex(slab.slots[index].key))
    }
    return keys
  }

  /// The number of allocated slots.
  @usableFromInline
  package var slotCount: Int { slab.slots.count }
}

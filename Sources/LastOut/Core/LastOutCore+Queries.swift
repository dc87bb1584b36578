// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// The earliest time at which ``nextRun(at:)`` may return a run; `nil` if no value waits for
  /// time.
  ///
  /// It is exact for keys that wait for quiet. It may be early, never late, for changes with their
  /// own delay, or after a run because of `maxWait`.
  @inlinable
  package var nextDeadline: Moment? { schedule.nextDeadline.map { Moment(nanoseconds: $0) } }

  /// The number of keys with a pending value.
  @inlinable package var pendingCount: Int { schedule.pendingCount }

  /// Whether `key` is running.
  @inlinable
  package func isRunning(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && schedule[index].isRunning
  }

  /// Whether `key` has a pending value.
  @inlinable
  package func isPending(_ key: KeyIndex) -> Bool { pendingSlot(of: key) != nil }

  /// The pending value of `key`.
  @inlinable
  package func pending(_ key: KeyIndex) -> Pending? {
    guard let index = pendingSlot(of: key), let value = schedule[index].value else { return nil }
    return Pending(
      value: value,
      collapsed: Int(schedule[index].collapsed),
      due: Moment(nanoseconds: schedule.due(of: index)),
      isMarkedDue: schedule[index].phase == .blocked
    )
  }

  /// The keys with a pending value, in unspecified order.
  ///
  /// Linear in the largest number of keys that were active at once.
  @inlinable
  package func pendingKeys() -> [KeyIndex] { schedule.keys { $0.isPending } }

  /// The keys with a pending value in some slots from `start` on, which moves behind these.
  @inlinable
  package func pendingKeys(from start: inout Int32, slots: Int) -> [KeyIndex] {
    let end = min(Int(start) + slots, slotCount)
    var keys: [KeyIndex] = []
    while Int(start) < end {
      if schedule[start].isPending { keys.append(KeyIndex(schedule[start].key)) }
      start += 1
    }
    return keys
  }

  /// The keys with a pending value; keys with the same quiet period are in the order of their last
  /// changes.
  ///
  /// Linear in the largest number of keys that were active at once.
  @inlinable
  package func pendingKeysInOrder() -> [KeyIndex] { schedule.pendingKeysInOrder() }

  /// The running keys, in unspecified order.
  ///
  /// Linear in the largest number of keys that were active at once.
  @inlinable
  package func runningKeys() -> [KeyIndex] { schedule.keys { $0.isRunning } }

  /// Whether the value of `key` was due before a change at `now`.
  @inlinable
  @inline(__always)
  package func isLate(_ key: KeyIndex, at now: Moment) -> Bool {
    guard let index = pendingSlot(of: key) else { return false }
    return schedule.due(of: index) <= max(now.nanoseconds, latest)
  }

  /// When the pending value of `key` is due, in nanoseconds; `nil` if it does not wait for time.
  @inlinable
  @inline(__always)
  package func deadline(of key: KeyIndex) -> UInt64? {
    let index = slot(of: key)
    guard index >= 0, schedule[index].phase == .quiet || schedule[index].phase == .heaped else {
      return nil
    }
    return schedule.due(of: index)
  }

  /// Whether any value is ready to run.
  @inlinable package var hasReady: Bool { schedule.ready.head >= 0 }

  /// Whether the value of `key` is ready to run.
  @inlinable
  package func isReady(_ key: KeyIndex) -> Bool {
    let index = slot(of: key)
    return index >= 0 && schedule[index].phase == .ready
  }

  /// Whether `key` has no state: it is idle and has the default policy.
  @usableFromInline
  package func isForgettable(_ key: KeyIndex) -> Bool {
    let position = position(of: key)
    return position >= entries.count
      || entries[position].slot < 0 && entries[position].rule == 0
  }

  /// The number of allocated slots.
  @inlinable
  package var slotCount: Int { schedule.slab.slots.count }
}

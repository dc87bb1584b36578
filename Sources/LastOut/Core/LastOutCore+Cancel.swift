// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// Drops the pending value of `key` and closes its burst; the interval between runs continues.
  ///
  /// A running value continues.
  @inlinable
  package mutating func cancel(_ key: KeyIndex) -> CancelResult {
    let index = slot(of: key)
    guard index >= 0 else { return .nothing }
    let isRunning = schedule[index].isRunning
    if let dropped = drop(index) { return .cancelled(dropped.value, collapsed: dropped.collapsed) }
    return isRunning ? .alreadyStarted : .nothing
  }

  /// Drops every pending value and closes every burst; returns the dropped values in unspecified
  /// order.
  ///
  /// Running values continue. Linear in the number of slots in use.
  @inlinable
  package mutating func cancelAll() -> [Cancelled] {
    var start: Int32 = 0
    return cancelAll(from: &start, slots: slotCount)
  }

  /// ``cancelAll()`` for some slots from `start` on, which moves behind these.
  @inlinable
  mutating func cancelAll(from start: inout Int32, slots: Int) -> [Cancelled] {
    var dropped: [Cancelled] = []
    let end = Int(start) + slots
    // Releasing the last slot may shrink the slab, so the count is read each time.
    while Int(start) < min(end, slotCount) {
      if schedule[start].phase != .free, let cancelled = drop(start) { dropped.append(cancelled) }
      start += 1
    }
    return dropped
  }

  /// Closes the burst of a slot and removes its pending value.
  @inlinable
  mutating func drop(_ index: Int32) -> Cancelled? {
    let key = KeyIndex(schedule[index].key)
    let collapsed = Int(schedule[index].collapsed)
    let value = schedule.removeValue(of: index)
    schedule[index].isOpen = false
    if !schedule[index].isRunning { retire(index, at: latest) }
    return value.map { Cancelled(key: key, value: $0, collapsed: collapsed) }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// Makes `value` the pending value of `key`; returns the value it replaced.
  ///
  /// ``nextReady(at:)`` returns a value that leads its burst. Dequeue the runs that are due at
  /// `now` before calling this: otherwise the new value replaces theirs.
  ///
  /// - Parameters:
  ///   - value: The value to run, unless a newer one replaces it.
  ///   - key: The key that changes.
  ///   - now: The current time.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - leads: Whether a change with its own `delay` leads where its policy says so.
  /// - Returns: The replaced value, or `value` if its policy drops it, so that the caller decides
  ///   where to free it.
  @inlinable
  @discardableResult
  package mutating func enqueue(
    _ value: consuming Value,
    for key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil,
    leads: Bool = true
  ) -> Value? {
    let now = advance(to: now)
    let place = Int(key.rawValue)
    // The fast path: one more change of a value that waits for quiet. Other cases cost a call.
    guard delay == nil, UInt(bitPattern: place) < UInt(bitPattern: entries.count) else {
      return enqueueUnusual(value, for: key, at: now, delay: delay, leads: leads)
    }
    let index = entries[place].slot
    guard index >= 0 else { return enqueueIdle(value, for: key, at: now) }
    let rule = unsafe rules.rules.address(of: Int(entries[place].rule))
    let slot = unsafe schedule.slab.slots.address(of: Int(index))
    guard unsafe slot.pointee.phase == .quiet,
      unsafe slot.pointee.quietList == rule.pointee.quietList,
      unsafe slot.pointee.maxWaitList == rule.pointee.maxWaitList,
      unsafe slot.pointee.quietEnd > now
    else { return unsafe enqueueAny(value, for: key, at: now, rule: rule.pointee) }
    unsafe slot.pointee.quietEnd = now.saturatingAdd(rule.pointee.delay)
    unsafe slot.pointee.collapsed &+= 1
    unsafe schedule.moveToTail(index, of: rule.pointee.quietList)
    return unsafe slot.pointee.exchange(value)
  }

  /// Lets `update` change the pending value of `key`, whose quiet period starts again.
  ///
  /// It does so only in the most frequent case, a change with the delay of the policy of a value
  /// that waits for quiet and is not due. Such a change makes no value ready and no deadline
  /// earlier.
  ///
  /// - Returns: Whether it did; `false` also if `update` declines.
  @inlinable
  @inline(__always)
  package mutating func renew(
    _ key: KeyIndex,
    at now: Moment,
    _ update: (inout Value) -> Bool
  ) -> Bool {
    let now = advance(to: now)
    let place = Int(key.rawValue)
    guard UInt(bitPattern: place) < UInt(bitPattern: entries.count) else { return false }
    let index = entries[place].slot
    guard index >= 0 else { return false }
    let rule = unsafe rules.rules.address(of: Int(entries[place].rule))
    let slot = unsafe schedule.slab.slots.address(of: Int(index))
    guard unsafe slot.pointee.phase == .quiet,
      unsafe slot.pointee.quietList == rule.pointee.quietList,
      unsafe slot.pointee.maxWaitList == rule.pointee.maxWaitList,
      unsafe slot.pointee.quietEnd > now,
      unsafe rule.pointee.span.map({ unsafe slot.pointee.waitStart.saturatingAdd($0) > now })
        ?? true,
      unsafe slot.pointee.update(update)
    else { return false }
    unsafe slot.pointee.quietEnd = now.saturatingAdd(rule.pointee.delay)
    unsafe slot.pointee.collapsed &+= 1
    unsafe schedule.moveToTail(index, of: rule.pointee.quietList)
    return true
  }

  /// A change of a new key, or with its own delay.
  @inlinable
  @inline(never)
  mutating func enqueueUnusual(
    _ value: consuming Value,
    for key: KeyIndex,
    at now: UInt64,
    delay: Duration?,
    leads: Bool
  ) -> Value? {
    addEntry(of: key)
    var rule = rules[entries[key.rawValue].rule]
    if let delay {
      rule.overrideDelay(delay, in: schedule.lists)
      rule.leading = rule.leading && leads
    }
    return enqueueAny(value, for: key, at: now, rule: rule)
  }

  /// The first change of an idle key.
  @inlinable
  @inline(never)
  mutating func enqueueIdle(_ value: consuming Value, for key: KeyIndex, at now: UInt64) -> Value? {
    let rule = unsafe rules.rules.address(of: Int(entries[key.rawValue].rule))
    guard unsafe rule.pointee.isPlain else {
      return unsafe enqueueAny(value, for: key, at: now, rule: rule.pointee)
    }
    let index = allocateSlot(of: key, at: now)
    let slot = unsafe schedule.slab.slots.address(of: Int(index))
    unsafe slot.pointee.waitStart = now
    unsafe slot.pointee.isOpen = true
    unsafe slot.pointee.quietEnd = now.saturatingAdd(rule.pointee.delay)
    unsafe slot.pointee.isInstant = rule.pointee.delay == 0
    let none = schedule.exchange(value, in: index)
    unsafe schedule.linkIntoQuiet(index, list: rule.pointee.quietList)
    return none
  }

  /// A change in any state of its key: also one that follows a run, moves to another list, or may
  /// lead.
  @inlinable
  @inline(never)
  mutating func enqueueAny(
    _ value: consuming Value,
    for key: KeyIndex,
    at now: UInt64,
    rule: Rule
  ) -> Value? {
    let index = allocateSlot(of: key, at: now)
    let isFirst = schedule[index].hasEnded(at: now)
    if isFirst {
      schedule[index].waitStart = now
      schedule[index].isOpen = true
    }
    schedule[index].quietEnd = now.saturatingAdd(rule.delay)
    schedule[index].isInstant = rule.delay == 0
    guard rule.trailing || isFirst || schedule[index].isPending else { return value }
    let replaced = schedule.exchange(value, in: index)
    schedule.linkMaxWait(index, list: rule.maxWaitList, at: now)
    if isFirst && rule.leading && !schedule[index].isUrgent {
      schedule.skipQuiet(of: index, at: now)
    }
    schedule.link(index, rule: rule, at: now)
    return replaced
  }
}

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

// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// Makes `value` the pending value of `key`; returns the value it replaced.
  ///
  /// ``nextReady(at:)`` returns a value that leads its burst. Dequeue the runs that are due at `now`
  /// before calling this: otherwise the new value replaces theirs.
  ///
  /// - Parameters:
  ///   - value: The value to run, unless a newer one replaces it.
  ///   - key: The key that changes.
  ///   - now: The current time.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  /// - Returns: The replaced value, or `value` if its policy drops it, so that the caller decides where
  ///   to free it.
  @inlinable
  @discardableResult
  package mutating func enqueue(
    _ value: consuming Value,
    for key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil
  ) -> Value? {
    let now = advance(to: now)
    let place = Int(key.rawValue)
    // The fast path: one more change of a value that waits for quiet. Other cases cost a call.
    guard delay == nil, UInt(bitPattern: place) < UInt(bitPattern: entries.count) else {
      return enqueueSlowly(value, for: key, at: now, delay: delay)
    }
    let index = entries[place].slot
    guard index >= 0 else { return begin(value, for: key, at: now) }
    let rule = unsafe rules.address(of: Int(entries[place].rule))
    let slot = unsafe slab.slots.address(of: Int(index))
    guard unsafe slot.pointee.phase == .quiet,
      unsafe slot.pointee.quietList == rule.pointee.quietList,
      unsafe slot.pointee.baseList == rule.pointee.baseList,
      unsafe slot.pointee.quietEnd > now
    else { return unsafe open(value, for: key, at: now, rule: rule.pointee) }
    unsafe slot.pointee.quietEnd = now.saturatingAdd(rule.pointee.delay)
    unsafe slot.pointee.collapsed &+= 1
    unsafe slab.moveToTail(index, of: &lists[Int(rule.pointee.quietList)].quiet)
    return unsafe slot.pointee.exchange(value)
  }

  /// A change of a new key, or with its own delay.
  @inlinable
  @inline(never)
  mutating func enqueueSlowly(
    _ value: consuming Value,
    for key: KeyIndex,
    at now: UInt64,
    delay: Duration?
  ) -> Value? {
    entries.extend(toInclude: position(of: key), with: Entry())
    return open(value, for: key, at: now, rule: rule(of: key, delay: delay))
  }

  /// The first change of an idle key.
  @inlinable
  @inline(never)
  mutating func begin(_ value: consuming Value, for key: KeyIndex, at now: UInt64) -> Value? {
    let index = claimSlot(of: key, at: now)
    let rule = unsafe rules.address(of: Int(entries[key.rawValue].rule))
    guard unsafe rule.pointee.isPlain else {
      return unsafe open(value, for: key, at: now, rule: rule.pointee)
    }
    let slot = unsafe slab.slots.address(of: Int(index))
    unsafe slot.pointee.base = now
    unsafe slot.pointee.isOpen = true
    unsafe slot.pointee.quietEnd = now.saturatingAdd(rule.pointee.delay)
    unsafe slot.pointee.isInstant = rule.pointee.delay == 0
    unsafe slot.pointee.phase = .quiet
    unsafe slot.pointee.quietList = rule.pointee.quietList
    unsafe slot.pointee.value = value
    pendingSlots += 1
    unsafe slab.append(index, to: &lists[Int(rule.pointee.quietList)].quiet)
    return nil
  }

  /// A change that follows a run, moves to another list, or may lead.
  @inlinable
  @inline(never)
  mutating func open(
    _ value: consuming Value,
    for key: KeyIndex,
    at now: UInt64,
    rule: Rule
  ) -> Value? {
    let index = claimSlot(of: key, at: now)
    let isFirst = slab[index].hasEnded(at: now)
    if isFirst {
      slab[index].base = now
      slab[index].isOpen = true
    }
    slab[index].quietEnd = now.saturatingAdd(rule.delay)
    slab[index].isInstant = rule.delay == 0
    guard rule.trailing || isFirst || slab[index].isPending else { return value }
    if slab[index].isPending { slab[index].collapsed &+= 1 } else { pendingSlots += 1 }
    if rule.baseList >= 0 || slab[index].baseList >= 0 { linkBase(index, rule: rule, at: now) }
    if isFirst && rule.leading && !slab[index].isUrgent {
      slab[index].isUrgent = true
      slab.setDue(now, of: index)
      // A value that was due behind a run is replaced; the new one may have to wait longer.
      if slab[index].phase == .blocked { slab[index].phase = .running }
    }
    place(index, rule: rule, at: now)
    return slab[index].exchange(value)
  }

  /// The key's slot; an idle key gets one from the slab.
  @inlinable
  @inline(__always)
  mutating func claimSlot(of key: KeyIndex, at now: UInt64) -> Int32 {
    let known = entries[key.rawValue].slot
    if known >= 0 { return known }
    if lingering.head >= 0 { reclaim(at: now) }
    let index = slab.allocate(for: key.rawValue)
    entries[key.rawValue].slot = index
    return index
  }

  // MARK: Links

  /// Links the slot into the list of its pending value.
  @inlinable
  @inline(__always)
  mutating func place(_ index: Int32, rule: Rule, at now: UInt64) {
    let earliest = slab.intervalEnd(of: index, interval: rule.interval)
    if slab[index].isUrgent {
      guard slab[index].phase != .ready, slab[index].phase != .blocked else { return }
      guard earliest <= now else { return placeInHeap(index, due: earliest) }
      slab.setDue(min(slab.extras[index].due, now), of: index)
      unlink(index)
      if slab[index].isRunning { slab[index].phase = .blocked } else { makeReady(index) }
      return
    }
    let due = rule.due(quietEnd: slab[index].quietEnd, base: slab[index].base)
    guard earliest <= due, rule.quietList >= 0, slab[index].baseList == rule.baseList,
      rule.span == nil || rule.baseList >= 0
    else { return placeInHeap(index, due: max(due, earliest)) }
    if slab[index].phase != .running { unlink(index) }
    slab[index].phase = .quiet
    slab[index].quietList = rule.quietList
    slab.append(index, to: &lists[Int(rule.quietList)].quiet)
  }

  @inlinable
  mutating func placeInHeap(_ index: Int32, due: UInt64) {
    slab.setDue(due, of: index)
    if slab[index].phase == .heaped { return heap.advance(index, due: due, in: &slab) }
    unlink(index)
    slab[index].phase = .heaped
    heap.push(index, due: due, in: &slab)
  }

  @inlinable
  mutating func makeReady(_ index: Int32) {
    slab[index].phase = .ready
    slab.append(index, to: &ready)
  }

  /// Removes the slot from the list of its phase.
  @inlinable
  mutating func unlink(_ index: Int32) {
    switch slab[index].phase {
    case .free, .running, .blocked: break
    case .lingering: slab.remove(index, from: &lingering)
    case .quiet: slab.remove(index, from: &lists[Int(slab[index].quietList)].quiet)
    case .heaped: heap.remove(index, in: &slab)
    case .ready: slab.remove(index, from: &ready)
    }
  }

  /// Keeps the slot in the base list of `rule` if its base allows that.
  ///
  /// A base list is sorted because slots are appended at their base time. A slot that would belong
  /// elsewhere waits in the heap instead.
  @inlinable
  mutating func linkBase(_ index: Int32, rule: Rule, at now: UInt64) {
    let isNewBase = slab[index].base == now
    guard isNewBase || slab[index].baseList != rule.baseList else { return }
    unlinkBase(index)
    guard isNewBase, rule.baseList >= 0 else { return }
    slab[index].baseList = rule.baseList
    slab.appendBase(index, to: &lists[Int(rule.baseList)].base)
  }

  @inlinable
  @inline(__always)
  mutating func unlinkBase(_ index: Int32) {
    let number = Int(slab[index].baseList)
    guard number >= 0 else { return }
    slab.removeBase(index, from: &lists[number].base)
    slab[index].baseList = -1
  }
}

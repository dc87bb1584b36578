// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// Takes the next run that is due at `now`; `nil` when none is.
  @inlinable
  package mutating func nextRun(at now: Moment) -> Run? {
    let now = advance(to: now)
    guard pendingSlots > 0 else { return nil }
    if ready.head >= 0 { return take(ready.head, at: now) }
    for number in 0..<lists.count {
      if let index = popQuiet(from: number, at: now) {
        return takeQuiet(index, from: number, at: now)
      }
      if let index = popBase(from: number, at: now) { return take(index, at: now) }
    }
    while let top = heap.top, top.due <= now {
      let due = due(of: top.slot)
      if due > top.due {
        heap.correctTop(due: due, in: &slab)
      } else if let index = passIfIdle(top.slot) {
        return take(index, at: now)
      }
    }
    return nil
  }

  /// Takes the next run that does not wait for time: a leading value, or one that was marked due
  /// while its key ran.
  ///
  /// Call it after each change and each end of a run. Values with a delay of zero are left for
  /// ``nextRun(at:)``, so that one synchronous batch collapses.
  @inlinable
  package mutating func nextReady(at now: Moment) -> Run? {
    let now = advance(to: now)
    let index = ready.head
    return index >= 0 ? take(index, at: now) : nil
  }

  /// Takes the run of `key` if it is due at `now`, whatever else is due.
  ///
  /// Call it before a change of a key that may be late. A value with a delay of zero is left, since
  /// the change belongs to the same batch.
  @inlinable
  package mutating func nextRun(of key: KeyIndex, at now: Moment) -> Run? {
    let now = advance(to: now)
    let index = slot(of: key)
    guard index >= 0, slab[index].isPending, due(of: index) <= now, !slab[index].isRunning,
      !slab[index].isInstant || slab[index].phase == .ready
    else { return nil }
    return take(index, at: now)
  }

  /// Says that the run of `key` has ended; what was marked due meanwhile becomes due now.
  ///
  /// The key must be running.
  @inlinable
  package mutating func finish(_ key: KeyIndex, at now: Moment) {
    let now = advance(to: now)
    let index = slot(of: key)
    guard index >= 0, slab[index].isRunning else {
      preconditionFailure("Key \(key.rawValue) is not running, so its run cannot end.")
    }
    slab[index].isRunning = false
    switch slab[index].phase {
    case .blocked: makeReady(index)
    case .running: retire(index, at: now)
    case .free, .lingering, .quiet, .heaped, .ready: break
    }
  }

  /// Takes the pending value of `key` now, whatever its deadline.
  @inlinable
  package mutating func flush(_ key: KeyIndex, at now: Moment) -> FlushResult {
    let now = advance(to: now)
    let index = slot(of: key)
    guard index >= 0, slab[index].isPending else { return .nothing }
    guard slab[index].isRunning else { return .run(take(index, at: now)) }
    expedite(key, at: Moment(nanoseconds: now))
    return .markedDue
  }

  /// Ends the wait of the pending value of `key`, which leaves by ``nextReady(at:)``.
  @inlinable
  package mutating func expedite(_ key: KeyIndex, at now: Moment) {
    let now = advance(to: now)
    let index = slot(of: key)
    guard index >= 0, slab[index].isPending, slab[index].phase != .ready else { return }
    slab[index].isUrgent = true
    block(index)
    slab.setDue(min(due(of: index), now), of: index)
    if !slab[index].isRunning { makeReady(index) }
  }

  /// Counts `now` as the start of a run of `key` that did not pass through the queue.
  ///
  /// For a value that left around the queue, after a cancel of what was pending.
  @usableFromInline
  package mutating func restartInterval(of key: KeyIndex, at now: Moment) {
    let now = advance(to: now)
    entries.extend(toInclude: position(of: key), with: Entry())
    let interval = rules[entries[key.rawValue].rule].interval
    guard interval > 0 else { return }
    let isIdle = entries[key.rawValue].slot < 0
    let index = claimSlot(of: key, at: now)
    slab.recordStart(of: index, at: now, interval: interval)
    guard isIdle else { return }
    slab[index].phase = .lingering
    slab.append(index, to: &lingering)
  }

  // MARK: Taking

  /// The oldest change of a delay list, if its quiet period is over and its key is not running.
  @inlinable
  @inline(__always)
  mutating func popQuiet(from number: Int, at now: UInt64) -> Int32? {
    while true {
      let index = lists[number].quiet.head
      guard index >= 0, slab[index].quietEnd <= now else { return nil }
      if let index = passIfIdle(index) { return index }
    }
  }

  /// The oldest base of a delay list, if a value has waited for its longest time.
  @inlinable
  mutating func popBase(from number: Int, at now: UInt64) -> Int32? {
    while true {
      let index = lists[number].base.head
      guard index >= 0,
        slab[index].base.saturatingAdd(lists[number].span) <= now
      else { return nil }
      if slab[index].phase != .quiet {
        unlinkBase(index)
      } else if let index = passIfIdle(index) {
        return index
      }
    }
  }

  /// The slot itself; or `nil` for a running key, whose value is marked due.
  @inlinable
  @inline(__always)
  mutating func passIfIdle(_ index: Int32) -> Int32? {
    guard slab[index].isRunning else { return index }
    block(index)
    return nil
  }

  /// Lets a due value wait for the end of its key's run.
  @inlinable
  mutating func block(_ index: Int32) {
    slab.setDue(due(of: index), of: index)
    unlink(index)
    unlinkBase(index)
    slab[index].phase = .blocked
  }

  /// Takes a slot out of where it waits and hands its value out.
  @inlinable
  mutating func take(_ index: Int32, at now: UInt64) -> Run {
    let due = due(of: index)
    unlink(index)
    return handOut(index, due: due, at: now)
  }

  /// The same for a slot in a quiet list: the usual case.
  @inlinable
  @inline(__always)
  mutating func takeQuiet(_ index: Int32, from number: Int, at now: UInt64) -> Run {
    let due = quietDue(of: index)
    slab.remove(index, from: &lists[number].quiet)
    return handOut(index, due: due, at: now)
  }

  /// Hands the pending value out and lets its key run.
  @inlinable
  @inline(__always)
  mutating func handOut(_ index: Int32, due: UInt64, at now: UInt64) -> Run {
    guard let value = slab[index].value.take() else {
      preconditionFailure("A slot is linked as pending, but holds no value.")
    }
    unlinkBase(index)
    let key = slab[index].key
    let run = Run(
      key: KeyIndex(key),
      value: value,
      collapsed: Int(slab[index].collapsed),
      due: Moment(nanoseconds: min(due, now))
    )
    pendingSlots -= 1
    slab[index].phase = .running
    slab[index].isRunning = true
    slab[index].isUrgent = false
    slab[index].collapsed = 0
    slab[index].base = now
    if isSpacing {
      let interval = rules[entries[key].rule].interval
      if interval > 0 { slab.recordStart(of: index, at: now, interval: interval) }
    }
    if slab[index].quietEnd > now {
      // The burst goes on: its next value is bounded from here.
      linkBase(index, rule: rules[entries[key].rule], at: now)
    }
    return run
  }

  // MARK: Giving memory back

  /// Whether an idle slot has nothing left to remember: no open burst, no interval.
  @inlinable
  @inline(__always)
  func isSpent(_ index: Int32, at now: UInt64) -> Bool {
    slab[index].hasEnded(at: now) && !slab.isSpaced(index, at: now)
  }

  /// Frees the slot of a key that became idle, unless its burst is still open or its interval runs.
  @inlinable
  mutating func retire(_ index: Int32, at now: UInt64) {
    if isSpent(index, at: now) { return release(index) }
    slab[index].phase = .lingering
    slab.append(index, to: &lingering)
  }

  /// Frees up to two slots whose burst and interval have ended meanwhile.
  @inlinable
  mutating func reclaim(at now: UInt64) {
    for _ in 0..<2 {
      let index = lingering.head
      guard index >= 0 else { return }
      slab.remove(index, from: &lingering)
      if isSpent(index, at: now) {
        release(index)
      } else {
        slab.append(index, to: &lingering)
      }
    }
  }

  @inlinable
  @inline(__always)
  mutating func release(_ index: Int32) {
    unlinkBase(index)
    entries[slab[index].key].slot = -1
    slab.release(index)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// Dequeues the next run that is due at `now`.
  @inlinable
  package mutating func nextRun(at now: Moment) -> Run? {
    let now = advance(to: now)
    guard pendingSlots > 0 else { return nil }
    if ready.head >= 0 { return dequeue(ready.head, at: now) }
    for number in 0..<lists.count {
      if let index = popQuiet(from: number, at: now) {
        return dequeueQuiet(index, from: number, at: now)
      }
      if let index = popBase(from: number, at: now) { return dequeue(index, at: now) }
    }
    while let top = heap.top, top.due <= now {
      let due = due(of: top.slot)
      if due > top.due {
        heap.correctTop(due: due, in: &slab)
      } else if let index = passIfIdle(top.slot) {
        return dequeue(index, at: now)
      }
    }
    return nil
  }

  /// Dequeues the next run that does not wait for time: a leading value, or one that was marked due
  /// while its key ran.
  ///
  /// Call it after each change and each end of a run. Values with a delay of zero stay for
  /// ``nextRun(at:)``, so that one synchronous batch collapses.
  @inlinable
  package mutating func nextReady(at now: Moment) -> Run? {
    let now = advance(to: now)
    let index = ready.head
    return index >= 0 ? dequeue(index, at: now) : nil
  }

  /// Dequeues the run of `key` if it is due at `now`, ahead of other due runs.
  ///
  /// Call it before a change of a key that may be late. A value with a delay of zero stays, because
  /// the change belongs to the same batch.
  @inlinable
  package mutating func nextRun(of key: KeyIndex, at now: Moment) -> Run? {
    let now = advance(to: now)
    let index = slot(of: key)
    guard index >= 0, slab[index].isPending, due(of: index) <= now, !slab[index].isRunning,
      !slab[index].isInstant || slab[index].phase == .ready
    else { return nil }
    return dequeue(index, at: now)
  }

  /// Ends the run of `key`; a value that was marked due meanwhile becomes ready.
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

  /// Dequeues the pending value of `key`, regardless of its deadline.
  @inlinable
  package mutating func flush(_ key: KeyIndex, at now: Moment) -> FlushResult {
    let now = advance(to: now)
    let index = slot(of: key)
    guard index >= 0, slab[index].isPending else { return .nothing }
    guard slab[index].isRunning else { return .run(dequeue(index, at: now)) }
    expedite(key, at: Moment(nanoseconds: now))
    return .markedDue
  }

  /// Ends the wait of the pending value of `key`; ``nextReady(at:)`` returns it.
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

  /// Records `now` as the start of a run of `key` that bypassed the queue.
  ///
  /// Call it for such a run after cancelling the pending value.
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

  // MARK: Dequeuing

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

  /// The oldest base of a delay list, if its value has waited for `maxWait`.
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

  /// The slot itself, or `nil` for a running key, whose value is marked due.
  @inlinable
  @inline(__always)
  mutating func passIfIdle(_ index: Int32) -> Int32? {
    guard slab[index].isRunning else { return index }
    block(index)
    return nil
  }

  /// Makes a due value wait for the end of its key's run.
  @inlinable
  mutating func block(_ index: Int32) {
    slab.setDue(due(of: index), of: index)
    unlink(index)
    unlinkBase(index)
    slab[index].phase = .blocked
  }

  /// Removes a slot from its list and returns its run.
  @inlinable
  mutating func dequeue(_ index: Int32, at now: UInt64) -> Run {
    let due = due(of: index)
    unlink(index)
    return handOut(index, due: due, at: now)
  }

  /// The same for a slot in a quiet list, the most frequent case.
  @inlinable
  @inline(__always)
  mutating func dequeueQuiet(_ index: Int32, from number: Int, at now: UInt64) -> Run {
    let due = quietDue(of: index)
    slab.remove(index, from: &lists[number].quiet)
    return handOut(index, due: due, at: now)
  }

  /// Removes the pending value and marks its key as running.
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
      // The burst continues: `maxWait` counts from here for its next value.
      linkBase(index, rule: rules[entries[key].rule], at: now)
    }
    return run
  }

  // MARK: Freeing memory

  /// Whether an idle slot has no state: no open burst and no interval.
  @inlinable
  @inline(__always)
  func isSpent(_ index: Int32, at now: UInt64) -> Bool {
    slab[index].hasEnded(at: now) && !slab.isSpaced(index, at: now)
  }

  /// Frees the slot of an idle key, unless its burst is open or its interval has not ended.
  @inlinable
  mutating func retire(_ index: Int32, at now: UInt64) {
    if isSpent(index, at: now) { return release(index) }
    slab[index].phase = .lingering
    slab.append(index, to: &lingering)
  }

  /// Frees up to two slots whose burst and interval have ended.
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

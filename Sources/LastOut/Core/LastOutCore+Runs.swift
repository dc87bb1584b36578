// Settle
// SPDX-License-Identifier: Apache-2.0

extension LastOutCore {
  /// Dequeues the next run that is due at `now`.
  @inlinable
  package mutating func nextRun(at now: Moment) -> Run? {
    let now = advance(to: now)
    guard schedule.pendingCount > 0, let index = schedule.nextDue(at: now) else { return nil }
    return start(index, at: now)
  }

  /// Dequeues the next run that does not wait for time: a leading value, or one that was marked due
  /// while its key ran.
  ///
  /// Call it after each change and each end of a run. Values with a delay of zero stay for
  /// ``nextRun(at:)``, so that one synchronous batch collapses.
  @inlinable
  package mutating func nextReady(at now: Moment) -> Run? {
    let now = advance(to: now)
    let index = schedule.ready.head
    return index >= 0 ? dequeue(index, at: now) : nil
  }

  /// Dequeues the run of `key` if it is due at `now`, ahead of other due runs.
  ///
  /// Call it before a change of a key that may be late. A value with a delay of zero stays, because
  /// the change belongs to the same batch.
  @inlinable
  package mutating func nextRun(of key: KeyIndex, at now: Moment) -> Run? {
    let now = advance(to: now)
    guard let index = pendingSlot(of: key), schedule.due(of: index) <= now,
      !schedule[index].isRunning, !schedule[index].isInstant || schedule[index].phase == .ready
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
    guard index >= 0, schedule[index].isRunning else {
      preconditionFailure("Key \(key.rawValue) is not running, so its run cannot end.")
    }
    schedule[index].isRunning = false
    switch schedule[index].phase {
    case .blocked: schedule.appendToReady(index)
    case .running: retire(index, at: now)
    case .free, .lingering, .quiet, .heaped, .ready: break
    }
  }

  /// Dequeues the pending value of `key`, regardless of its deadline.
  @inlinable
  package mutating func flush(_ key: KeyIndex, at now: Moment) -> FlushResult {
    let time = advance(to: now)
    guard let index = pendingSlot(of: key) else { return .nothing }
    guard schedule[index].isRunning else { return .run(dequeue(index, at: time)) }
    expedite(key, at: now)
    return .markedDue
  }

  /// Ends the wait of the pending value of `key`; ``nextReady(at:)`` returns it.
  @inlinable
  package mutating func expedite(_ key: KeyIndex, at now: Moment) {
    let now = advance(to: now)
    guard let index = pendingSlot(of: key), schedule[index].phase != .ready else { return }
    schedule.expedite(index, at: now)
  }

  /// Records `now` as the start of a run of `key` that bypassed the queue.
  ///
  /// Call it for such a run after cancelling the pending value.
  @usableFromInline
  package mutating func restartInterval(of key: KeyIndex, at now: Moment) {
    let now = advance(to: now)
    addEntry(of: key)
    let interval = rules[entries[key.rawValue].rule].interval
    guard interval > 0 else { return }
    let isIdle = entries[key.rawValue].slot < 0
    let index = allocateSlot(of: key, at: now)
    schedule.slab.recordStart(of: index, at: now, interval: interval)
    if isIdle { schedule.linger(index) }
  }

  /// The same as ``start(_:at:)``, out of line for the less frequent callers.
  @inlinable
  @inline(never)
  mutating func dequeue(_ index: Int32, at now: UInt64) -> Run { start(index, at: now) }

  /// Removes the pending value of a slot and marks its key as running.
  @inlinable
  @inline(__always)
  mutating func start(_ index: Int32, at now: UInt64) -> Run {
    let due = schedule.due(of: index)
    let collapsed = Int(schedule[index].collapsed)
    guard let value = schedule.removeValue(of: index) else {
      preconditionFailure("A slot is linked as pending, but holds no value.")
    }
    let key = schedule[index].key
    schedule[index].isRunning = true
    schedule[index].waitStart = now
    if rules.hasIntervals {
      let interval = rules[entries[key].rule].interval
      if interval > 0 { schedule.slab.recordStart(of: index, at: now, interval: interval) }
    }
    if schedule[index].quietEnd > now {
      // The burst continues: `maxWait` counts from here for its next value.
      schedule.linkMaxWait(index, list: rules[entries[key].rule].maxWaitList, at: now)
    }
    return Run(
      key: KeyIndex(key),
      value: value,
      collapsed: collapsed,
      due: Moment(nanoseconds: min(due, now))
    )
  }
}

extension LastOutCore {
  /// A value to run now.
  ///
  /// Its key counts as running until ``LastOutCore/finish(_:at:)``.
  @usableFromInline
  @frozen
  package struct Run {
    /// The key of the value.
    @usableFromInline
    package let key: KeyIndex
    /// The newest value of the key.
    @usableFromInline
    package let value: Value
    /// The number of changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int
    /// When the value was due; the time since then is its lateness.
    @usableFromInline
    package let due: Moment

    @inlinable
    init(key: KeyIndex, value: Value, collapsed: Int, due: Moment) {
      self.key = key
      self.value = value
      self.collapsed = collapsed
      self.due = due
    }
  }

  /// The pending value of a key.
  @usableFromInline
  @frozen
  package struct Pending {
    /// The newest value.
    @usableFromInline
    package let value: Value
    /// The number of changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int
    /// When it is due, unless it changes.
    @usableFromInline
    package let due: Moment
    /// Whether it is due and waits for the end of the key's run.
    @usableFromInline
    package let isMarkedDue: Bool

    @inlinable
    init(value: Value, collapsed: Int, due: Moment, isMarkedDue: Bool) {
      self.value = value
      self.collapsed = collapsed
      self.due = due
      self.isMarkedDue = isMarkedDue
    }
  }

  /// The outcome of a cancel.
  @usableFromInline
  @frozen
  package enum CancelResult {
    /// The pending value was dropped.
    ///
    /// It is returned, so that the caller decides where to free it.
    case cancelled(Value, collapsed: Int)
    /// Nothing is pending, and the key is running.
    case alreadyStarted
    /// Nothing is pending and nothing runs.
    case nothing
  }

  /// A value that ``LastOutCore/cancelAll()`` dropped.
  @usableFromInline
  @frozen
  package struct Cancelled {
    /// The key of the value.
    @usableFromInline
    package let key: KeyIndex
    /// The dropped value, returned so that the caller decides where to free it.
    @usableFromInline
    package let value: Value
    /// The number of changes replaced since the key's last run or cancel.
    @usableFromInline
    package let collapsed: Int

    @inlinable
    init(key: KeyIndex, value: Value, collapsed: Int) {
      self.key = key
      self.value = value
      self.collapsed = collapsed
    }
  }

  /// The outcome of a flush.
  @usableFromInline
  @frozen
  package enum FlushResult {
    /// The pending value runs now.
    case run(Run)
    /// The key is running: its pending value follows at ``LastOutCore/finish(_:at:)``.
    case markedDue
    /// Nothing is pending.
    case nothing
  }
}

extension LastOutCore.Run: Sendable where Value: Sendable {}
extension LastOutCore.Pending: Sendable where Value: Sendable {}
extension LastOutCore.CancelResult: Sendable where Value: Sendable {}
extension LastOutCore.Cancelled: Sendable where Value: Sendable {}
extension LastOutCore.FlushResult: Sendable where Value: Sendable {}

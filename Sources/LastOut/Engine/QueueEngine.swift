// Settle
// SPDX-License-Identifier: Apache-2.0

/// The thread-safe shell around the core: lock, ask, unlock, act.
///
/// Nothing is called and nothing is released while the lock is held. A change that moves the next
/// deadline forward wakes the timekeeper; only the timekeeper arms a timer.
@usableFromInline
package final class QueueEngine<Key: Hashable & Sendable, Value: Sendable>: ServedEngine {
  @usableFromInline typealias Run = LastOutCore<Value>.Run
  @usableFromInline typealias Work = EngineWork<Value>

  @usableFromInline let state: Lock<EngineState<Key, Value>>
  @usableFromInline let time: any Timekeeper
  /// Whether the timekeeper has the machine's clock, which is read directly.
  @usableFromInline let isMonotonic: Bool
  @usableFromInline let place: TaskPlace
  @usableFromInline let perform: @Sendable (QueueEngine, Run, _ start: Moment) -> Void
  /// Receives the keys of values that were cancelled.
  @usableFromInline let onCancel: (@Sendable (Key) -> Void)?

  /// Creates an engine without keys.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own.
  ///   - time: The timekeeper, which serves only this engine.
  ///   - place: Where values run.
  ///   - onCancel: Receives the keys of values that are cancelled.
  ///   - perform: Runs a value that starts at a moment; a run that is not detached ends when this
  ///     returns.
  @usableFromInline
  package init(
    policy: Policy,
    time: any Timekeeper,
    place: TaskPlace,
    onCancel: (@Sendable (Key) -> Void)? = nil,
    perform: @escaping @Sendable (QueueEngine, LastOutCore<Value>.Run, Moment) -> Void
  ) {
    state = Lock(EngineState(policy: policy))
    self.time = time
    isMonotonic = time is DriverSeat
    self.place = place
    self.onCancel = onCancel
    self.perform = perform
    time.attach(self)
  }

  deinit {
    time.stop()
  }

  @inlinable package var now: Moment { isMonotonic ? MonotonicTime.now : time.now }

  @usableFromInline
  package var nextDeadline: Moment? {
    state.withLock { $0.isHeldUp ? nil : $0.core.nextDeadline }
  }

  @inlinable
  package func service() -> Moment? {
    while true {
      let now = self.now
      let (work, next) = state.withLock { state in
        var work = Work()
        state.collectDue(into: &work, at: now, place: place)
        return (work, state.rearm(at: now, place: place))
      }
      let isDone = work.runs.isEmpty
      act(on: work)
      if isDone { return next }
    }
  }

  package func setPolicy(_ policy: Policy, for key: Key) {
    state.withLock { $0.core.setPolicy(policy, for: $0.intern(key)) }
  }

  @usableFromInline
  func removePolicy(for key: Key) {
    state.withLock { state in
      if let key = state.names.find(key) { state.core.setRule(0, for: key) }
    }
  }

  // MARK: Changes

  /// Makes `value` the pending value of `key`; returns whether it replaced another.
  @inlinable
  package func enqueue(_ value: consuming Value, for key: Key, delay: Duration?) -> Bool {
    let now = self.now
    var value = value
    var replaced: Value?
    // Most changes make no work and create none: its lists would cost as much as the change.
    var work: Work?
    let isRenewed = state.withLock { state in
      let key = state.intern(key)
      let isRenewed =
        delay == nil
        && state.core.renew(key, at: now) { current in
          swap(&current, &value)
          return true
        }
      if !isRenewed {
        replaced = state.change(key, to: value, delay, at: now, place: place, &work)
      }
      return isRenewed
    }
    if let work { act(on: work) }
    return isRenewed || replaced != nil
  }

  // MARK: Queries

  @inlinable package var pendingCount: Int {
    state.withLock { $0.core.pendingCount + $0.claims.count }
  }

  /// Whether nothing is pending and nothing runs.
  package var isIdle: Bool {
    state.withLock { state in
      state.core.pendingCount == 0 && state.claims.isEmpty && state.core.runningKeys().isEmpty
    }
  }

  /// The keys with a pending value; the lock is released between groups of them.
  @inlinable package var pendingKeys: [Key] {
    var found = Set<KeyIndex>()
    var place: Int32 = 0
    var isDone = false
    while !isDone {
      let start = place
      let (group, next, count) = state.withLock { state in
        var next = start
        let claimed = start == 0 ? state.claims.keys : []
        let group = claimed + state.core.pendingKeys(from: &next, slots: 4096)
        return (group, next, state.core.slotCount)
      }
      found.formUnion(group)
      place = next
      isDone = Int(next) >= count
      if !isDone { Thread.letOthersIn() }
    }
    var keys: [Key] = []
    keys.reserveCapacity(found.count)
    var rest = found.makeIterator()
    while true {
      var group: [KeyIndex] = []
      while group.count < 1024, let key = rest.next() { group.append(key) }
      if group.isEmpty { return keys }
      keys += state.withLock { [group] state in
        // The number of a key that is no longer pending may be another key's by now.
        group.filter { state.core.isPending($0) || state.claims[$0] != nil }
          .map { state.names.key(of: $0) }
      }
      if keys.count < found.count { Thread.letOthersIn() }
    }
  }

  package func isPending(_ key: Key) -> Bool {
    state.withLock { state in
      state.names.find(key).map { state.core.isPending($0) || state.claims[$0] != nil } ?? false
    }
  }

  package func isRunning(_ key: Key) -> Bool {
    state.withLock { state in
      state.names.find(key).map { state.core.isRunning($0) && state.claims[$0] == nil } ?? false
    }
  }

  package func pendingValue(of key: Key) -> Value? {
    state.withLock { state in
      guard let key = state.names.find(key) else { return nil }
      return state.core.pending(key)?.value ?? state.claims[key]
    }
  }

  /// The key with this number, which is in use.
  @inlinable
  package func key(of index: KeyIndex) -> Key {
    state.withLock { $0.names.key(of: index) }
  }

  /// The number of keys that have an index, in use or not yet reclaimed.
  package var nameCount: Int { state.withLock { $0.names.count } }
}

extension QueueEngine: RunOwner where Value == LastOutTask {
  @usableFromInline
  func add(_ wait: OutcomeWait, for key: KeyIndex) -> Bool {
    state.withLock { state in
      if wait.run.result != nil { return false }
      state.outcomeWaits[key, default: []].append(wait)
      return true
    }
  }

  @usableFromInline
  func cancel(_ run: LastOutRun, of key: KeyIndex) -> CancelOutcome {
    let now = self.now
    let (dropped, name, task, work) = state.withLock {
      state -> (Value?, Key?, Task<Void, Never>?, Work) in
      var work = Work()
      var dropped: Value?
      if state.claims[key]?.run === run {
        dropped = state.dropClaim(of: key, as: .cancelled, at: now, into: &work)
      } else if state.core.pending(key)?.value.run === run {
        dropped = state.drop(key, as: .cancelled, at: now, into: &work)
      }
      let isRunning = state.tasks[key]?.needs.handle === run
      let name = dropped.map { _ in state.names.key(of: key) }
      state.complete(&work, at: now, place: place)
      return (dropped, name, isRunning ? state.tasks[key]?.cancel() : nil, work)
    }
    act(on: work)
    task?.cancel()
    if dropped != nil {
      if let name { onCancel?(name) }
      return .cancelled
    }
    return run.isDropped ? .nothing : .alreadyStarted
  }

  /// Makes a closure the pending task of `key`; returns its run, and whether it replaced another.
  ///
  /// `body` becomes the replaced closure. A run that no caller has is used again, so a change of a
  /// pending task allocates nothing.
  @inlinable
  func enqueue(
    _ body: inout LastOutTask.Body,
    for key: Key,
    delay: Duration?
  ) -> (run: LastOutRun, hasReplaced: Bool) {
    let now = self.now
    // Captured variables, because a tuple that leaves the closure would be copied.
    var work: Work?
    var run: LastOutRun?
    var hasReplaced = true
    let dropped = state.withLock { state -> LastOutTask? in
      let index = state.intern(key)
      let isRenewed =
        delay == nil
        && state.core.renew(index, at: now) { task in
          guard task.isUnheld() else { return false }
          swap(&task.body, &body)
          run = task.run
          return true
        }
      if isRenewed { return nil }
      let new = LastOutRun(owner: self, key: index)
      run = new
      let task = LastOutTask(body: body, run: new)
      let dropped = state.change(index, to: task, delay, at: now, place: place, &work)
      // A policy can drop the new task instead of an old one.
      hasReplaced = dropped.map { $0.run !== new } ?? false
      if let dropped { state.end(dropped, of: index, &work) }
      return dropped
    }
    if let work { act(on: work) }
    withExtendedLifetime(dropped) {}
    guard let run else { preconditionFailure("An enqueue has no run.") }
    return (run, hasReplaced)
  }
}

extension EngineState where Value == LastOutTask {
  /// Records that a task was replaced, or that its policy drops it.
  @usableFromInline
  mutating func end(_ task: LastOutTask, of key: KeyIndex, _ work: inout Work?) {
    task.run.end(.dropped)
    guard !outcomeWaits.isEmpty else { return }
    var more = work ?? Work()
    endOutcomeWaits(for: key, into: &more)
    work = more
  }
}

extension QueueEngine {
  /// Drops the pending value of `key`, and cancels its running task.
  package func cancel(_ key: Key) -> CancelOutcome {
    let now = self.now
    let (dropped, outcome, task, work) = state.withLock {
      state -> (Value?, CancelOutcome, Task<Void, Never>?, Work) in
      var work = Work()
      guard let key = state.names.find(key) else { return (nil, .nothing, nil, work) }
      let isRunning = state.core.isRunning(key) && state.claims[key] == nil
      let dropped = state.drop(key, as: .cancelled, at: now, into: &work)
      state.complete(&work, at: now, place: place)
      let outcome: CancelOutcome =
        dropped != nil ? .cancelled : isRunning ? .alreadyStarted : .nothing
      return (dropped, outcome, state.tasks[key]?.cancel(), work)
    }
    act(on: work)
    task?.cancel()
    if outcome == .cancelled { onCancel?(key) }
    withExtendedLifetime(dropped) {}
    return outcome
  }

  /// Drops all pending values and cancels running tasks; returns the number of dropped values.
  @inlinable
  package func cancelAll() -> Int {
    let count = dropAll(as: .cancelled, onCancel)
    cancelTasks()
    return count
  }

  @usableFromInline
  func cancelTasks() {
    let running = state.withLock { state in
      state.tasks.keys.compactMap { state.tasks[$0]?.cancel() }
    }
    for task in running { task.cancel() }
  }

  /// Drops all pending values, because the queue is released.
  @inlinable
  func close() {
    if pendingCount > 0 { _ = dropAll(as: .dropped, nil) }
  }

  /// Drops pending values in groups, with the lock released in between.
  @inlinable
  func dropAll(as ending: RunEnding, _ report: (@Sendable (Key) -> Void)?) -> Int {
    var count = 0
    var next: Int32? = 0
    while let start = next {
      let now = self.now
      let needsNames = report != nil
      let (dropped, names, end, work) = state.withLock { state -> ([Value], [Key], Int32?, Work) in
        var work = Work()
        var end = start
        var dropped = state.core.cancelAll(from: &end, slots: 1024).map { ($0.key, $0.value) }
        for (key, value) in dropped {
          state.recordDrop(of: key, value, as: ending, into: &work)
        }
        // A flush removes its claims quickly: they are dropped with the first group.
        for key in start == 0 ? state.claims.keys : [] {
          if let value = state.dropClaim(of: key, as: ending, at: now, into: &work) {
            dropped.append((key, value))
          }
        }
        let names = needsNames ? dropped.map { state.names.key(of: $0.0) } : []
        let isLast = Int(end) >= state.core.slotCount
        state.complete(&work, at: now, place: place)
        return (dropped.map(\.1), names, isLast ? nil : end, work)
      }
      act(on: work)
      if let report { for name in names { report(name) } }
      count += dropped.count
      next = end
      if end != nil { Thread.letOthersIn() }
    }
    return count
  }
}

extension EngineState {
  /// Drops the pending value of `key`, and one that a flush has claimed; returns one of them.
  mutating func drop(
    _ key: KeyIndex,
    as ending: RunEnding,
    at now: Moment,
    into work: inout Work
  ) -> Value? {
    var dropped: Value?
    if case .cancelled(let value, _) = core.cancel(key) {
      dropped = value
      recordDrop(of: key, value, as: ending, into: &work)
    }
    return dropClaim(of: key, as: ending, at: now, into: &work) ?? dropped
  }

  /// Records that the pending value of `key` was dropped.
  @inlinable
  mutating func recordDrop(
    of key: KeyIndex,
    _ value: Value,
    as ending: RunEnding,
    into work: inout Work
  ) {
    if let task = value as? LastOutTask { task.run.end(ending) }
    if core.isRunning(key) {
      endOutcomeWaits(for: key, into: &work)
    } else {
      recordEnd(of: key, isDrop: true, into: &work)
    }
  }

  /// Drops the claimed value of `key`.
  @inlinable
  mutating func dropClaim(
    of key: KeyIndex,
    as ending: RunEnding,
    at now: Moment,
    into work: inout Work
  ) -> Value? {
    guard let value = claims.remove(key)?.value else { return nil }
    if let task = value as? LastOutTask { task.run.end(ending) }
    finish(key, into: &work, at: now)
    return value
  }
}

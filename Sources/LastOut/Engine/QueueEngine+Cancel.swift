// Settle
// SPDX-License-Identifier: Apache-2.0

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

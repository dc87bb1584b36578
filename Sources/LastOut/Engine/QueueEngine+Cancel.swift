// Settle
// SPDX-License-Identifier: Apache-2.0

extension QueueEngine {
  /// Drops the pending value of `key`, and cancels its running task.
  package func cancel(_ key: Key) -> CancelOutcome {
    let now = time.now
    let (dropped, outcome, task, work) = state.withLock {
      state -> (Value?, CancelOutcome, Task<Void, Never>?, Work) in
      var work = Work()
      guard let key = state.names.find(key) else { return (nil, .nothing, nil, work) }
      let isRunning = state.core.isRunning(key) && state.claims[key] == nil
      let dropped = state.drop(key, as: .cancelled, at: now, into: &work)
      state.complete(&work, at: now, place: place)
      let outcome = dropped != nil ? CancelOutcome.cancelled : isRunning ? .alreadyStarted : .nothing
      return (dropped, outcome, state.tasks[key]?.cancel(), work)
    }
    act(on: work)
    task?.cancel()
    if outcome == .cancelled { onCancel?(key) }
    withExtendedLifetime(dropped) {}
    return outcome
  }

  /// Drops all pending values and cancels running tasks; returns the number of dropped values.
  package func cancelAll() -> Int {
    let count = dropAll(as: .cancelled, onCancel)
    let running = state.withLock { state in
      state.tasks.keys.compactMap { state.tasks[$0]?.cancel() }
    }
    for task in running { task.cancel() }
    return count
  }

  /// Drops all pending values, because the queue is released.
  @usableFromInline
  func close() { _ = dropAll(as: .dropped, nil) }

  /// Drops pending values in groups, with the lock released in between.
  private func dropAll(as ending: RunEnding, _ report: (@Sendable (Key) -> Void)?) -> Int {
    var count = 0
    var next: Int32? = 0
    while let start = next {
      let now = time.now
      let needsNames = report != nil
      let (dropped, names, end, work) = state.withLock { state -> ([Value], [Key], Int32?, Work) in
        var work = Work()
        var end = start
        var dropped = state.core.cancelAll(from: &end, slots: 512).map { ($0.key, $0.value) }
        for (key, value) in dropped {
          state.recordDrop(of: key, value, as: ending, into: &work)
        }
        // A flush removes its claims quickly: they are dropped with the first group.
        for key in start == 0 ? state.claims.keys : [] {
          guard let value = state.dropClaim(of: key, as: ending, at: now, into: &work) else { continue }
          dropped.append((key, value))
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
  mutating func recordDrop(
    of key: KeyIndex,
    _ value: Value,
    as ending: RunEnding,
    into work: inout Work
  ) {
    if let task = value as? LastOutTask { task.token.end(ending) }
    if core.isRunning(key) {
      endOutcomeWaits(for: key, into: &work)
    } else {
      recordEnd(of: key, isDrop: true, into: &work)
    }
  }

  /// Drops the claimed value of `key`.
  mutating func dropClaim(
    of key: KeyIndex,
    as ending: RunEnding,
    at now: Moment,
    into work: inout Work
  ) -> Value? {
    guard let value = claims.remove(key)?.value else { return nil }
    if let task = value as? LastOutTask { task.token.end(ending) }
    finish(key, into: &work, at: now)
    return value
  }
}

extension QueueEngine: RunOwner where Value == LastOutTask {
  func add(_ wait: OutcomeWait, for key: KeyIndex) -> Bool {
    state.withLock { state in
      if wait.token.outcome != nil { return false }
      state.outcomeWaits[key, default: []].append(wait)
      return true
    }
  }

  func cancel(_ token: RunToken, of key: KeyIndex) -> CancelOutcome {
    let now = time.now
    let (dropped, name, task, work) = state.withLock {
      state -> (Value?, Key?, Task<Void, Never>?, Work) in
      var work = Work()
      var dropped: Value?
      if state.claims[key]?.token === token {
        dropped = state.dropClaim(of: key, as: .cancelled, at: now, into: &work)
      } else if state.core.pending(key)?.value.token === token {
        dropped = state.drop(key, as: .cancelled, at: now, into: &work)
      }
      let isRunning = state.tasks[key]?.needs.token === token
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
    switch token.outcome {
    case .dropped, .cancelled: return .nothing
    case .completed, .failed, nil: return .alreadyStarted
    }
  }

  /// Makes a closure the pending task of `key`; returns its run, and whether it replaced another.
  ///
  /// A task that no ``LastOutRun`` refers to passes its token on, so a change of a pending task
  /// allocates nothing.
  func enqueue(
    _ body: LastOutTask.Body,
    for key: Key,
    delay: Duration?
  ) -> (run: LastOutRun, hasReplaced: Bool) {
    let now = time.now
    let (index, token, replaced, work) = state.withLock {
      state -> (KeyIndex, RunToken, LastOutTask?, Work?) in
      var work: Work?
      let key = state.intern(key)
      if state.core.isLate(key, at: now) {
        work = state.collectLate(key, at: now, place: place)
      }
      let unheld = state.core.unheldToken(of: key)
      let token = unheld ?? RunToken()
      let task = LastOutTask(body: body, token: token)
      let replaced = state.core.enqueue(task, for: key, at: now, delay: delay)
      if let replaced, unheld == nil {
        replaced.token.end(.dropped)
        if !state.outcomeWaits.isEmpty {
          var more = work ?? Work()
          state.endOutcomeWaits(for: key, into: &more)
          work = more
        }
      }
      if state.hasWork(afterChangeOf: key) {
        state.completeChange(of: key, &work, at: now, place: place)
      }
      return (key, token, replaced, work)
    }
    if let work { act(on: work) }
    // A policy can drop the new task instead of an old one.
    let hasReplaced = replaced.map { $0.token !== token || token.outcome == nil } ?? false
    return (LastOutRun(owner: self, key: index, token: token), hasReplaced)
  }
}

extension LastOutCore where Value == LastOutTask {
  /// The token of the pending task of `key`, if no ``LastOutRun`` has it.
  mutating func unheldToken(of key: KeyIndex) -> RunToken? {
    guard let index = pendingSlot(of: key), schedule[index].value?.isUnheld() == true else {
      return nil
    }
    return schedule[index].value?.token
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

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

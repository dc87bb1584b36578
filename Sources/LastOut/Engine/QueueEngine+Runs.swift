// Settle
// SPDX-License-Identifier: Apache-2.0

extension QueueEngine {
  /// Performs the actions that were decided under the lock.
  @usableFromInline
  func act(on work: Work) {
    if let deadline = work.wake { time.wake(at: deadline) }
    switch place {
    case .here: break
    case .threads(let pool, _):
      for _ in 0..<work.threads { pool.submit(self) }
    case .elsewhere(let submit):
      if work.needsCall { submit { [self] in answerCall() } }
    }
    for waiter in work.ended { waiter.end() }
    for run in work.runs { execute(run) }
  }

  /// Runs a value on the calling thread.
  @inlinable
  func execute(_ run: consuming Run) {
    let key = run.key
    if !start(run, at: time.now) { end(key) }
  }

  /// Calls the handler of a value; returns whether the run outlives the call.
  @inlinable
  func start(_ run: consuming Run, at now: Moment) -> Bool {
    let run = run
    return RunMark.during(self, run.key) { perform(self, run, now) }
  }

  @inlinable
  package func end(_ key: KeyIndex) {
    let now = time.now
    let work = state.withLock { state in
      var work = Work()
      state.finish(key, into: &work, at: now)
      state.complete(&work, at: now, place: place)
      return work
    }
    if !work.isEmpty { act(on: work) }
  }

  @inlinable
  package func work() {
    var next = state.withLock { $0.assigned.isEmpty ? nil : $0.assigned.removeFirst() }
    var now = time.now
    while let run = next.take() {
      let key = run.key
      let isOpen = start(run, at: now)
      (next, now) = dequeueNext(after: isOpen ? nil : key)
    }
  }

  /// Ends a thread's run; returns the next due value for that thread, and the time.
  @inlinable
  func dequeueNext(after key: KeyIndex?) -> (Run?, Moment) {
    let now = time.now
    let (next, work) = state.withLock { state in
      var work = Work()
      state.unhold()
      if let key { state.finish(key, into: &work, at: now) }
      let next = state.core.nextReady(at: now) ?? state.core.nextRun(at: now)
      if next == nil { state.busy -= 1 }
      state.complete(&work, at: now, place: place)
      return (next, work)
    }
    if !work.isEmpty { act(on: work) }
    return (next, now)
  }

  /// Runs one value on the executor, and requests another call if more are due.
  private func answerCall() {
    let now = time.now
    let (next, work) = state.withLock { state in
      var work = Work()
      state.isCalled = false
      state.unhold()
      let next = state.core.nextReady(at: now) ?? state.core.nextRun(at: now)
      state.collectDue(into: &work, at: now, place: place)
      state.complete(&work, at: now, place: place)
      return (next, work)
    }
    act(on: work)
    if let next { execute(next) }
  }

  // MARK: Runs that became tasks

  @usableFromInline
  package func own(_ task: OwnedTask, for key: KeyIndex) {
    state.withLock { $0.tasks[key] = task }
  }
}

extension EngineState {
  /// Ends the run of `key`.
  @inlinable
  mutating func finish(_ key: KeyIndex, into work: inout Work, at now: Moment) {
    core.finish(key, at: now)
    if !tasks.isEmpty { tasks[key] = nil }
    recordEnd(of: key, into: &work)
  }

  /// Drops the pending or claimed value of `key`.
  mutating func drop(
    _ key: KeyIndex,
    at now: Moment,
    place: TaskPlace,
    into work: inout Work
  ) -> (CancelOutcome, [Value]) {
    var dropped: [Value] = []
    var outcome = CancelOutcome.nothing
    switch core.cancel(key) {
    case .cancelled(let value, _):
      dropped.append(value)
      outcome = .cancelled
    case .alreadyStarted: outcome = .alreadyStarted
    case .nothing: break
    }
    if let claim = claims.remove(key) {
      dropped.append(claim.value)
      outcome = .cancelled
      finish(key, into: &work, at: now)
    } else if !core.isRunning(key) {
      recordEnd(of: key, into: &work)
    }
    complete(&work, at: now, place: place)
    return (outcome, dropped)
  }

  mutating func dropAll(at now: Moment, place: TaskPlace, into work: inout Work) -> [Value] {
    var dropped: [Value] = []
    for cancelled in core.cancelAll() {
      dropped.append(cancelled.value)
      if !core.isRunning(cancelled.key) { recordEnd(of: cancelled.key, into: &work) }
    }
    for claim in claims.all {
      dropped.append(claim.value)
      finish(claim.key, into: &work, at: now)
    }
    claims.removeAll()
    complete(&work, at: now, place: place)
    return dropped
  }
}

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
    case .elsewhere(let executor):
      if work.needsCall { executor.submit { [self] in answerCall() } }
    }
    for waiter in work.ended { waiter.end() }
    for wait in work.outcomes { wait.resume() }
    for run in work.runs { execute(run) }
  }

  /// Runs a value on the calling thread.
  @inlinable
  func execute(_ run: consuming Run) {
    var awaited = Awaited.no
    execute(run, awaited: &awaited)
  }

  /// Runs a value on the calling thread, for a flush that waits for it.
  @inlinable
  func execute(_ run: consuming Run, awaited: inout Awaited) {
    let key = run.key
    if !start(run, at: now, awaited: &awaited) { end(key) }
  }

  /// Calls the handler of a value; returns whether the run outlives the call.
  @inlinable
  func start(_ run: consuming Run, at now: Moment, awaited: inout Awaited) -> Bool {
    let run = run
    return RunMark.during(self, run.key, awaited: &awaited) { perform(self, run, now) }
  }

  @inlinable
  package func end(_ key: KeyIndex) {
    let now = self.now
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
    var now = self.now
    var awaited = Awaited.no
    while let run = next.take() {
      let key = run.key
      let isOpen = start(run, at: now, awaited: &awaited)
      (next, now) = dequeueNext(after: isOpen ? nil : key)
    }
  }

  /// Ends a thread's run; returns the next due value for that thread, and the time.
  @inlinable
  func dequeueNext(after key: KeyIndex?) -> (Run?, Moment) {
    let now = self.now
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
    let now = self.now
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
  package func beginTask(
    of key: KeyIndex,
    _ needs: TaskNeeds,
    awaited: inout Awaited
  ) -> TaskPlan {
    let former = awaited
    let plan: TaskPlan
    (plan, awaited) = state.withLock { state in
      var awaited = former
      state.await(key, by: &awaited)
      state.newestTask += 1
      state.tasks[key] = RunTask(number: state.newestTask, needs: needs)
      if let job = needs.mainJob { state.offer(job, of: key) }
      let executor = state.taskExecutor ?? place.makeTaskExecutor()
      state.taskExecutor = executor
      let plan = TaskPlan(
        number: state.newestTask,
        executor: executor,
        priority: place.priority,
        mayCloseCircle: needs.isMain && !state.waits.isEmpty
      )
      return (plan, awaited)
    }
    return plan
  }

  @usableFromInline
  package func own(_ task: Task<Void, Never>, of key: KeyIndex, number: Int) {
    let isCancelled = state.withLock { state in
      guard state.tasks[key]?.number == number else { return false }
      state.tasks[key]?.task = task
      return state.tasks[key]?.isCancelled ?? false
    }
    if isCancelled { task.cancel() }
  }

  @usableFromInline
  package func needs(of waiter: Waiter) -> [KeyIndex: [WaitNode]] {
    state.withLock { state in
      guard let place = state.place(of: waiter) else { return [:] }
      var needs: [KeyIndex: [WaitNode]] = [:]
      for key in state.waits[place].keys.keys {
        var nodes = [WaitNode.run(ObjectIdentifier(self), key)]
        if let needs = state.tasks[key]?.needs, needs.isMain {
          let runsOnWaiter = state.waits[place].isOnMain && needs.mainJob != nil
          if !runsOnWaiter { nodes.append(.main) }
        }
        if case .elsewhere(let executor) = self.place { nodes.append(executor.node) }
        needs[key] = nodes
      }
      return needs
    }
  }

  @usableFromInline
  package func refuse(_ keys: Set<KeyIndex>, of waiter: Waiter) -> String {
    let (names, work) = state.withLock { state -> ([Key], Work) in
      var work = Work()
      guard let place = state.place(of: waiter) else { return ([], work) }
      let keys = keys.filter { state.waits[place].keys[$0] != nil }
      let names = keys.map { state.names.key(of: $0) }
      state.waits[place].refused += names
      state.remove(keys, from: place, into: &work)
      return (names, work)
    }
    for waiter in work.ended { waiter.end() }
    return names.map { "\"\($0)\"" }.joined(separator: ", ")
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
}

// Settle
// SPDX-License-Identifier: Apache-2.0

private import Synchronization

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

/// Continues runs beyond the call that started them.
enum RunTasks {
  /// Continues the current run as a task, which ends the run.
  ///
  /// The task prefers the executor of its engine, so a blocked thread of Swift's own pool does not
  /// delay it.
  ///
  /// - Parameters:
  ///   - handle: The run of a queue's task; `nil` for the run of a value.
  ///   - isolation: The actor that the body needs; `nil` for none.
  ///   - carried: The task, if it was made before.
  ///   - body: What is left of the run.
  static func begin(
    _ handle: LastOutRun?,
    isolation: (any Actor)?,
    _ carried: CarriedOperation?,
    _ body: @escaping @Sendable () async -> Void
  ) {
    let isMain = isolation.map { $0 === MainActor.shared } ?? false
    let (end, plan) = RunMark.beginTask(TaskNeeds(handle: handle, isMain: isMain, mainJob: nil))
    let run: @Sendable () async -> Void = {
      await AsyncRunMark.during(end, body)
      end()
    }
    if let carried {
      end.engine.own(carried.task, of: end.key, number: plan.number)
      carried.carrier.start(on: plan.executor, run)
    } else {
      let task = Task.detached(
        executorPreference: plan.executor,
        priority: plan.priority,
        operation: run
      )
      end.engine.own(task, of: end.key, number: plan.number)
    }
    if plan.mayCloseCircle { WaitGraph.refuseCircles() }
  }

  /// Continues the current run on the main thread, even while that waits for the run.
  static func beginOnMain(_ handle: LastOutRun?, _ body: @escaping @Sendable () -> Void) {
    let job = MainJob(RunMark.detach(), body)
    let (_, plan) = RunMark.beginTask(TaskNeeds(handle: handle, isMain: true, mainJob: job))
    Task { @MainActor in job() }
    if plan.mayCloseCircle { WaitGraph.refuseCircles() }
  }
}

/// What a run that outlives its call needs.
@usableFromInline
@frozen
package struct TaskNeeds: Sendable {
  /// The run, if it belongs to a task of a queue.
  let handle: LastOutRun?
  /// Whether it needs the main thread.
  let isMain: Bool
  /// All that is left of the run, if the main thread can do it at once.
  let mainJob: MainJob?
}

/// The rest of a run, for the main thread.
@usableFromInline
package final class MainJob: Sendable {
  private let run: RunEnd
  private let body: @Sendable () -> Void
  private let hasStarted = Atomic(false)

  init(_ run: RunEnd, _ body: @escaping @Sendable () -> Void) {
    self.run = run
    self.body = body
  }

  /// Ends the run, with the first call.
  func callAsFunction() {
    guard !hasStarted.exchange(true, ordering: .acquiringAndReleasing) else { return }
    var awaited = Awaited.no
    _ = RunMark.during(run.engine, run.key, awaited: &awaited, body)
    run()
  }
}

/// How an engine runs a task.
@usableFromInline
@frozen
package struct TaskPlan: Sendable {
  /// Distinguishes the task from later ones of its key.
  let number: Int
  let executor: any TaskExecutor
  let priority: TaskPriority?
  /// Whether the task needs a thread that another caller may block while it waits for the task.
  let mayCloseCircle: Bool
}

/// The rest of a run that outlived its call.
@usableFromInline
@frozen
struct RunTask: Sendable {
  let number: Int
  let needs: TaskNeeds
  /// The task, once it was made.
  var task: Task<Void, Never>?
  var isCancelled = false

  /// Marks the task as cancelled; the caller cancels the result.
  mutating func cancel() -> Task<Void, Never>? {
    isCancelled = true
    return task
  }
}

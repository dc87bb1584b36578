// Settle
// SPDX-License-Identifier: Apache-2.0
/// The thread-safe shell around the core: lock, ask, unlock, act.
///
/// Nothing is called and nothing is released while the lock is held. Whoever finds that the next
/// deadline got earlier tells the timekeeper; the timekeeper alone arms a timer, and asks again.
package final class QueueEngine: Sendable {
  /// What was found under the lock and is done after it.
  struct Work {
    var runs: [LastOutCore<Job>.Run] = []
    /// The new next deadline, if it is earlier than the one the timekeeper knows.
    var wake: Moment?
  }

  let state: Locked<EngineState>
  private let time: any Timekeeper
  private let onError: @Sendable (String, any Error) -> Void

  /// Creates an engine without keys.
  ///
  /// - Parameters:
  ///   - policy: How keys settle that have no policy of their own.
  ///   - time: Serves this engine alone.
  ///   - onError: Receives the key's name and what its task threw, where the task ran.
  package init(
    policy: Policy,
    time: any Timekeeper,
    onError: @escaping @Sendable (String, any Error) -> Void
  ) {
    state = Locked(EngineState(policy: policy))
    self.time = time
    self.onError = onError
    time.attach(self)
  }

  deinit {
    time.stop()
  }

  package var now: Moment { time.now }

  /// The earliest moment at which ``service()`` has something to do.
  package var nextDeadline: Moment? {
    state.withLock { $0.core.nextDeadline }
  }

  /// Starts what is due; returns when to call again.
  package func service() -> Moment? {
    while true {
      let now = time.now
      let (work, next) = state.withLock { state in
        var work = Work()
        state.collectDue(into: &work, at: now, limit: 256)
        let next = state.core.nextDeadline
        state.armed = next?.nanoseconds ?? .max
        return (work, next)
      }
      perform(work)
      if work.runs.isEmpty { return next }
    }
  }

  // MARK: Changes

  package func enqueue(_ job: Job, forKey name: String, delay: Duration?) {
    enqueue(job, delay: delay) { $0.names.intern(name) }
  }

  package func enqueue(_ job: Job, for key: KeyIndex, delay: Duration?) {
    enqueue(job, delay: delay) { _ in key }
  }

  private func enqueue(
    _ job: Job,
    delay: Duration?,
    key: (inout EngineState) -> KeyIndex
  ) {
    let now = time.now
    let (replaced, work) = state.withLock { state in
      let key = key(&state)
      var work = Work()
      // A timer that is due comes before this change, even when its driver is late.
      if let run = state.core.nextRun(of: key, at: now) { work.runs.append(run) }
      let replaced = state.core.enqueue(job, for: key, at: now, delay: delay)
      state.complete(&work, at: now)
      return (replaced, work)
    }
    perform(work)
    withExtendedLifetime(replaced) {}
  }

  package func cancel(_ key: KeyIndex) -> CancelOutcome {
    let result = state.withLock { $0.core.cancel(key) }
    switch result {
    case .cancelled: return .cancelled
    case .alreadyStarted: return .alreadyStarted
    case .nothing: return .nothing
    }
  }

  package func cancelAll() -> Int {
    let dropped = state.withLock { $0.core.cancelAll() }
    return dropped.count
  }

  /// Runs what is pending for `key` on the caller.
  package func flush(_ key: KeyIndex) -> FlushOutcome {
    let now = time.now
    let result = state.withLock { $0.core.flush(key, at: now) }
    switch result {
    case .run(let run):
      execute(run)
      return .ran
    case .markedDue: return .markedDue
    case .nothing: return .nothing
    }
  }

  /// Runs what is pending now, once per key, on the caller.
  package func flushAll() {
    for key in state.withLock({ $0.core.pendingKeys() }) { _ = flush(key) }
  }

  // MARK: Runs

  private func perform(_ work: Work) {
    if let deadline = work.wake { time.wake(at: deadline) }
    for run in work.runs { time.perform { [self] in execute(run) } }
  }

  private func execute(_ run: LastOutCore<Job>.Run) {
    run.value.onStart?()
    do {
      try run.value.task()
    } catch {
      onError(state.withLock { $0.names.name(of: run.key) }, error)
    }
    finish(run.key)
  }

  private func finish(_ key: KeyIndex) {
    let now = time.now
    let work = state.withLock { state in
      var work = Work()
      state.core.finish(key, at: now)
      state.complete(&work, at: now)
      state.recycleIfRetired(key)
      return work
    }
    perform(work)
  }
}

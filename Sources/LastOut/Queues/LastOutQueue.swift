// Settle
// SPDX-License-Identifier: Apache-2.0

/// A thread-safe queue in which only the last task of a key runs, when the key has been quiet.
///
/// Each change of a key replaces its pending task. The task runs once the key's ``Policy`` says so;
/// tasks of one key never overlap, and a slow or throwing task never delays another key. Every
/// method may be called from any thread, tasks included.
///
/// An idle queue has no timer, no thread and causes no wake-up. When the queue itself goes away,
/// what is pending is dropped without running; call ``flushAll(timeout:)`` or ``drain()`` first to
/// run it. A task that has started keeps the queue's inside alive until it has ended.
///
/// For values instead of closures, and keys that are no strings, see ``LastOutValueQueue``.
public final class LastOutQueue: Sendable {
  private let engine: QueueEngine<String, Job>
  private let onError: @Sendable (String, any Error) -> Void
  private let log: (@Sendable (LastOutEvent<String>) -> Void)?

  /// A queue for the whole program, with the default policy.
  public static let `default` = LastOutQueue()

  /// Creates a queue.
  ///
  /// - Parameters:
  ///   - policy: How keys settle that have no policy of their own; two seconds of quiet.
  ///   - clock: What the queue lives by: the machine's monotonic clock, which stands still while
  ///     the machine is suspended.
  ///   - executor: Where tasks run: threads of the library's own, or with a test clock the thread
  ///     that moves it. Asynchronous tasks run where Swift runs tasks.
  ///   - onError: Receives the key and what its task threw, on the thread where the task ran.
  ///     Without it, a line is written to standard error.
  ///   - log: Receives what happens to tasks, on the thread where it happens.
  public init(
    policy: Policy = .standard,
    clock: any Clock<Duration> = SuspendingClock(),
    executor: LastOutExecutor? = nil,
    onError: (@Sendable (_ key: String, _ error: any Error) -> Void)? = nil,
    log: (@Sendable (LastOutEvent<String>) -> Void)? = nil
  ) {
    let onError = onError ?? Self.report
    self.onError = onError
    self.log = log
    engine = QueueEngine(
      policy: policy,
      time: clock.timekeeper(),
      place: executor?.place ?? clock.defaultPlace
    ) { engine, run in
      if let log { log(.started(engine.key(of: run.key))) }
      run.value.onStart?()
      var failure: (any Error)?
      do { try run.value.task() } catch { failure = error }
      if let failure { onError(engine.key(of: run.key), failure) }
      if let log, !run.value.isAsynchronous {
        log(.ended(engine.key(of: run.key), error: failure))
      }
    }
  }

  private static func report(key: String, error: any Error) {
    StandardError.write("the task of key \"\(key)\" threw: \(error)")
  }

  /// Sets how a key settles, from its next change on.
  public func setPolicy(_ policy: Policy, forKey key: String) {
    engine.setPolicy(policy, for: key)
  }

  // MARK: Changes

  /// Makes `task` the pending task of a key; the one it replaces never runs and is freed at once.
  ///
  /// - Parameters:
  ///   - key: Whose change it is.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task.
  ///   - task: Runs where the queue's executor says; or on the caller of ``flush(forKey:)`` or
  ///     ``flushAll(timeout:)``.
  public func enqueue(
    forKey key: String,
    delay: Duration? = nil,
    onStart: (@Sendable () -> Void)? = nil,
    task: @escaping @Sendable () throws -> Void
  ) {
    log?(.enqueued(key))
    engine.enqueue(Job(onStart: onStart, task: task), for: key, delay: delay)
  }

  /// Makes an asynchronous task the pending task of a key; the run ends when the task returns.
  ///
  /// A closure that is isolated to an actor runs there. What the task throws reaches the queue's
  /// `onError` and the result's ``LastOutRun/outcome``.
  ///
  /// - Parameters:
  ///   - key: Whose change it is.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task.
  ///   - task: Runs as a task that ``cancelAll()`` cancels.
  /// - Returns: The task's end, for who wants to wait for it.
  @discardableResult
  public func enqueue(
    forKey key: String,
    delay: Duration? = nil,
    onStart: (@Sendable () -> Void)? = nil,
    task: @escaping @Sendable @isolated(any) () async throws -> Void
  ) -> LastOutRun {
    log?(.enqueued(key))
    let handle = LastOutRun(task)
    let sentinel = DropSentinel(handle)
    let job = Job(onStart: onStart, isAsynchronous: true) { [onError, log] in
      withExtendedLifetime(sentinel) {}
      let owned = OwnedTask()
      guard let operation = handle.start(owned: owned) else { return }
      AsyncRuns.detach(owned: owned) {
        var failure: (any Error)?
        do { try await operation() } catch { failure = error }
        if let failure { onError(key, failure) }
        log?(.ended(key, error: failure))
        handle.end(failure.map { .failed($0) } ?? .completed)
      }
    }
    engine.enqueue(job, for: key, delay: delay)
    return handle
  }

  /// Makes a task that runs on the main actor the pending task of a key.
  ///
  /// - Parameters:
  ///   - key: Whose change it is.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task.
  ///   - task: Runs on the main actor.
  /// - Returns: The task's end, for who wants to wait for it.
  @discardableResult
  public func enqueue(
    forKey key: String,
    delay: Duration? = nil,
    onStart: (@Sendable () -> Void)? = nil,
    task: @escaping @Sendable @MainActor () throws -> Void
  ) -> LastOutRun {
    let operation: LastOutRun.Operation = { @MainActor in try task() }
    return enqueue(forKey: key, delay: delay, onStart: onStart, task: operation)
  }

  /// Drops the pending task of a key, and what it captured, before returning.
  @discardableResult
  public func cancel(forKey key: String) -> CancelOutcome {
    engine.cancel(key)
  }

  /// Drops all pending tasks and cancels the asynchronous ones that run.
  ///
  /// - Returns: How many tasks were dropped.
  @discardableResult
  public func cancelAll() -> Int {
    engine.cancelAll()
  }

  /// Runs the pending task of a key on the caller and returns when it has run.
  ///
  /// If the key is running elsewhere, its pending task follows there instead.
  @discardableResult
  public func flush(forKey key: String) -> FlushOutcome {
    engine.flush(key)
  }

  /// Runs what is pending now, once per key, on the caller, and waits for the runs in flight and the
  /// tasks that wait behind them.
  ///
  /// What those tasks enqueue stays pending. Called inside a task of this queue it runs what is
  /// pending and waits for nothing, so that no task waits for itself. A task that blocks on another
  /// thread which calls this waits for ever; give a timeout there.
  ///
  /// - Parameter timeout: When to stop starting tasks and waiting; `nil` waits without end.
  /// - Returns: The keys whose tasks had not ended when the time was over; they go on.
  @discardableResult
  public func flushAll(timeout: Duration? = nil) -> [String] {
    engine.flushAll(timeout: timeout)
  }

  /// The same as ``flushAll(timeout:)``, under the name that the queue's first description has.
  @discardableResult
  public func executePendingTasks(timeout: Duration? = nil) -> [String] {
    flushAll(timeout: timeout)
  }

  /// Has what is pending now run, and waits for it and for the runs in flight, without blocking.
  ///
  /// Called inside a task of this queue it waits for nothing. Returns early when the caller's task
  /// is cancelled.
  public func drain() async {
    await engine.drain()
  }

  // MARK: Questions

  /// How many keys have a pending task.
  public var pendingCount: Int { engine.pendingCount }

  /// The keys with a pending task, in no promised order.
  public var pendingKeys: [String] { engine.pendingKeys }

  /// Whether a task of a key waits.
  public func isPending(forKey key: String) -> Bool { engine.isPending(key) }

  /// Whether a task of a key has started and not ended.
  public func isRunning(forKey key: String) -> Bool { engine.isRunning(key) }

  /// How many keys have a name, in use or not yet given back.
  package var nameCount: Int { engine.nameCount }
}

/// What happens to the tasks of a queue, for a log.
public enum LastOutEvent<Key: Hashable & Sendable>: Sendable {
  /// A change of the key came in.
  case enqueued(Key)
  /// The pending task of the key starts.
  case started(Key)
  /// The task of the key has ended, with an error if it threw one.
  case ended(Key, error: (any Error)?)
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A thread-safe queue that runs only the last task of each key, once the key has been quiet.
///
/// Each change of a key replaces its pending task. The key's ``Policy`` decides when the task runs.
/// Tasks of one key never overlap, and a slow or throwing task never delays another key. Every method
/// may be called from any thread, including from tasks.
///
/// An idle queue has no timer, no thread and causes no wake-ups. Releasing the queue drops pending
/// tasks without running them; call ``flushAll(timeout:)`` or ``drain()`` first to run them. A
/// running task keeps the queue's internal state alive until it ends.
///
/// For values instead of closures, and for keys of other types, see ``LastOutValueQueue``.
public final class LastOutQueue: Sendable {
  private let engine: QueueEngine<String, Job>
  private let onError: @Sendable (String, any Error) -> Void
  private let log: (@Sendable (LastOutEvent<String>) -> Void)?

  /// A queue for the whole program, with the default policy.
  public static let `default` = LastOutQueue()

  /// Creates a queue.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own; by default two seconds of quiet.
  ///   - clock: The clock of the queue; by default the machine's monotonic clock, which stops while
  ///     the machine is suspended.
  ///   - executor: Where tasks run; by default threads of the library, or with a test clock the
  ///     thread that advances it. Asynchronous tasks run on Swift's global executor.
  ///   - onError: Receives the key and the error that its task threw, on the thread of the task.
  ///     Without it, errors are written to standard error.
  ///   - log: Receives the events of tasks, on the thread where they happen.
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
    ) { engine, run, _ in
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

  /// Sets the policy of a key, from its next change on.
  public func setPolicy(_ policy: Policy, forKey key: String) {
    engine.setPolicy(policy, for: key)
  }

  // MARK: Changes

  /// Makes `task` the pending task of a key; the task that it replaces never runs and is freed at once.
  ///
  /// - Parameters:
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task.
  ///   - task: Runs on the queue's executor, or on the caller of ``flush(forKey:)`` or
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
  /// A closure that is isolated to an actor runs on that actor. An error that the task throws is passed
  /// to the queue's `onError` and the result's ``LastOutRun/outcome``.
  ///
  /// - Parameters:
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task.
  ///   - task: Runs as a task that ``cancelAll()`` cancels.
  /// - Returns: An object to await the task's end with.
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
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task.
  ///   - task: Runs on the main actor.
  /// - Returns: An object to await the task's end with.
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

  /// Drops the pending task of a key; its captures are freed before this method returns.
  @discardableResult
  public func cancel(forKey key: String) -> CancelOutcome {
    engine.cancel(key)
  }

  /// Drops all pending tasks and cancels running asynchronous ones.
  ///
  /// - Returns: The number of dropped tasks.
  @discardableResult
  public func cancelAll() -> Int {
    engine.cancelAll()
  }

  /// Runs the pending task of a key on the calling thread, and returns when it has ended.
  ///
  /// If the key is already running, its pending task runs after that instead.
  @discardableResult
  public func flush(forKey key: String) -> FlushOutcome {
    engine.flush(key)
  }

  /// Runs all pending tasks, once per key, on the calling thread, and waits for the running tasks and
  /// the tasks queued behind them.
  ///
  /// Tasks that are enqueued meanwhile stay pending. Inside a task of this queue it runs the pending
  /// tasks and does not wait, so that no task waits for itself. A task that blocks on another thread
  /// which calls this method deadlocks; pass a timeout there.
  ///
  /// - Parameter timeout: How long to start tasks and to wait; `nil` for no limit.
  /// - Returns: The keys whose tasks had not ended when the timeout passed; these tasks continue.
  @discardableResult
  public func flushAll(timeout: Duration? = nil) -> [String] {
    engine.flushAll(timeout: timeout)
  }

  /// Another name for ``flushAll(timeout:)``.
  @discardableResult
  public func executePendingTasks(timeout: Duration? = nil) -> [String] {
    flushAll(timeout: timeout)
  }

  /// Runs all pending tasks, and waits for them and for running tasks without blocking a thread.
  ///
  /// Inside a task of this queue it does not wait. It returns early when the caller's task is
  /// cancelled.
  public func drain() async {
    await engine.drain()
  }

  // MARK: Queries

  /// The number of keys with a pending task.
  public var pendingCount: Int { engine.pendingCount }

  /// The keys with a pending task, in unspecified order.
  public var pendingKeys: [String] { engine.pendingKeys }

  /// Whether a key has a pending task.
  public func isPending(forKey key: String) -> Bool { engine.isPending(key) }

  /// Whether a task of a key is running.
  public func isRunning(forKey key: String) -> Bool { engine.isRunning(key) }

  /// The number of keys that have an index, in use or not yet reclaimed.
  package var nameCount: Int { engine.nameCount }
}

/// An event of a queue's task, for a log.
public enum LastOutEvent<Key: Hashable & Sendable>: Sendable {
  /// A task was enqueued for the key.
  case enqueued(Key)
  /// The pending task of the key starts.
  case started(Key)
  /// The task of the key has ended, with an error if it threw one.
  case ended(Key, error: (any Error)?)
}

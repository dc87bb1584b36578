// Settle
// SPDX-License-Identifier: Apache-2.0

/// A thread-safe queue of values that handles only the last value of each key, once the key has
/// been quiet.
///
/// Each change of a key replaces its pending value. The key's ``Policy`` decides when the value is
/// handled. Runs of one key never overlap, and a slow or throwing handler never delays another key.
/// Every method may be called from any thread, including from the handler. A change of a known key
/// does not allocate.
///
/// ```swift
/// let queue = LastOutValueQueue<DeviceID, Int>(policy: .live) { device, brightness, _ in
///   try await lamp(device).send(brightness)
/// }
/// queue.enqueue(40, forKey: .deskLamp)
/// ```
///
/// An idle queue has no timer, no thread and causes no wake-ups; one that was never used is a few
/// hundred bytes. Releasing the queue drops pending values without handling them; call
/// ``flushAll(timeout:)`` or ``drain()`` first to handle them. Runs in flight continue. A process
/// made by `fork` must not use a queue of its parent, because it has none of its threads.
///
/// For closures instead of values, see ``LastOutQueue``.
public final class LastOutValueQueue<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline
  typealias Perform =
    @Sendable (QueueEngine<Key, Value>, LastOutCore<Value>.Run, _ start: Moment) -> Void

  private let policy: Policy
  private let clock: any Clock<Duration>
  let executor: LastOutExecutor?
  private let perform: Perform
  /// Whether pending values outlive the queue.
  private let keepsPending: Bool
  @usableFromInline let log: (@Sendable (LastOutEvent<Key>) -> Void)?
  /// The engine, once it was needed.
  @usableFromInline let lazyEngine = LazyReference<QueueEngine<Key, Value>>()

  @usableFromInline
  init(
    policy: Policy,
    clock: any Clock<Duration>,
    executor: LastOutExecutor?,
    log: (@Sendable (LastOutEvent<Key>) -> Void)?,
    keepsPending: Bool = false,
    perform: @escaping Perform
  ) {
    self.policy = policy
    self.clock = clock
    self.executor = executor
    self.log = log
    self.keepsPending = keepsPending
    self.perform = perform
  }

  deinit { if !keepsPending { lazyEngine.object?.close() } }

  /// Calls `body` with the engine, which is made with the first call.
  @inlinable
  @inline(__always)
  func withEngine<Result>(_ body: (QueueEngine<Key, Value>) -> Result) -> Result {
    // Retaining an object that has weak references is slow.
    let engine = unsafe lazyEngine.unretained ?? makeEngine()
    return unsafe engine._withUnsafeGuaranteedRef { body($0) }
  }

  @unsafe
  @usableFromInline
  @inline(never)
  func makeEngine() -> Unmanaged<QueueEngine<Key, Value>> {
    var onCancel: (@Sendable (Key) -> Void)?
    if let log { onCancel = { log(.cancelled($0)) } }
    let engine = QueueEngine(
      policy: policy,
      time: clock.timekeeper(),
      place: executor?.place ?? clock.defaultPlace,
      onCancel: onCancel,
      perform: perform
    )
    return unsafe Unmanaged.passUnretained(lazyEngine.setIfNil(engine))
  }

  // MARK: Handlers

  /// Creates a queue with a synchronous handler.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own; by default two seconds of quiet.
  ///   - clock: The clock of the queue; by default the machine's monotonic clock.
  ///   - executor: Where the handler runs; by default threads of the library, or with a test clock
  ///     the thread that advances it.
  ///   - onError: Receives the key, the value and the error that the handler threw, so that it can
  ///     enqueue the value again. Without it, errors other than `CancellationError` are written to
  ///     standard error.
  ///   - log: Receives the events of values, on the thread where they happen.
  ///   - handler: Receives a key, its newest value, and information about the run.
  @inlinable
  public convenience init(
    policy: Policy = .standard,
    clock: any Clock<Duration> = SuspendingClock(),
    executor: LastOutExecutor? = nil,
    onError: (@Sendable (_ key: Key, _ value: Value, _ error: any Error) -> Void)? = nil,
    log: (@Sendable (LastOutEvent<Key>) -> Void)? = nil,
    handler: @escaping @Sendable (_ key: Key, _ value: Value, _ info: LastOutRunInfo) throws -> Void
  ) {
    let report = RunReport(onError: onError, log: log)
    self.init(policy: policy, clock: clock, executor: executor, log: log) { engine, run, now in
      let key = engine.key(of: run.key)
      if log != nil { report.started(key) }
      do {
        try handler(key, run.value, LastOutRunInfo(run, startedAt: now))
        if log != nil { report.ended(key, run.value) }
      } catch {
        report.ended(key, run.value, error: error)
      }
    }
  }

  /// Creates a queue with an asynchronous handler: the run of a key ends when the handler returns.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own; by default two seconds of quiet.
  ///   - clock: The clock of the queue; by default the machine's monotonic clock.
  ///   - executor: Where the handler runs; by default threads of the library.
  ///   - onError: Receives the key, the value and the error that the handler threw, so that it can
  ///     enqueue the value again. Without it, errors other than `CancellationError` are written to
  ///     standard error.
  ///   - log: Receives the events of values, on the thread where they happen.
  ///   - handler: Receives a key, its newest value, and information about the run. It runs as a
  ///     task that ``cancel(forKey:)`` and ``cancelAll()`` cancel.
  public convenience init(
    policy: Policy = .standard,
    clock: any Clock<Duration> = SuspendingClock(),
    executor: LastOutExecutor? = nil,
    onError: (@Sendable (_ key: Key, _ value: Value, _ error: any Error) -> Void)? = nil,
    log: (@Sendable (LastOutEvent<Key>) -> Void)? = nil,
    handler:
      @escaping @Sendable @isolated(any) (
        _ key: Key, _ value: Value, _ info: LastOutRunInfo
      ) async throws -> Void
  ) {
    let report = RunReport(onError: onError, log: log)
    self.init(policy: policy, clock: clock, executor: executor, log: log) { engine, run, now in
      let key = engine.key(of: run.key)
      let info = LastOutRunInfo(run, startedAt: now)
      let value = run.value
      report.runTask(value, forKey: key, isolation: handler.isolation) {
        try await handler(key, value, info)
      }
    }
  }

  /// Creates a queue whose handler runs on the main actor.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own; by default two seconds of quiet.
  ///   - clock: The clock of the queue; by default the machine's monotonic clock.
  ///   - onError: Receives the key, the value and the error that the handler threw, so that it can
  ///     enqueue the value again. Without it, errors other than `CancellationError` are written to
  ///     standard error.
  ///   - log: Receives the events of values, on the thread where they happen.
  ///   - handler: Receives a key, its newest value, and information about the run.
  public convenience init(
    policy: Policy = .standard,
    clock: any Clock<Duration> = SuspendingClock(),
    onError: (@Sendable (_ key: Key, _ value: Value, _ error: any Error) -> Void)? = nil,
    log: (@Sendable (LastOutEvent<Key>) -> Void)? = nil,
    handler:
      @escaping @Sendable @MainActor (
        _ key: Key, _ value: Value, _ info: LastOutRunInfo
      ) throws -> Void
  ) {
    let report = RunReport(onError: onError, log: log)
    self.init(policy: policy, clock: clock, executor: nil, log: log) { engine, run, now in
      let key = engine.key(of: run.key)
      let info = LastOutRunInfo(run, startedAt: now)
      let value = run.value
      report.runOnMain(value, forKey: key) { try handler(key, value, info) }
    }
  }

  // MARK: Policies

  /// Sets the policy of a key, from its next change on.
  public func setPolicy(_ policy: Policy, forKey key: Key) {
    withEngine { $0.setPolicy(policy, for: key) }
  }

  /// Gives a key the policy of the queue again, from its next change on.
  public func removePolicy(forKey key: Key) { lazyEngine.object?.removePolicy(for: key) }

  // MARK: Changes

  /// Makes `value` the pending value of a key; the value that it replaces is freed at once.
  ///
  /// - Parameters:
  ///   - value: The value for the handler, unless a newer one replaces it.
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  @inlinable
  public func enqueue(_ value: Value, forKey key: Key, delay: Duration? = nil) {
    log?(.enqueued(key))
    let hasReplaced = withEngine { $0.enqueue(value, for: key, delay: delay) }
    if hasReplaced { log?(.replaced(key)) }
  }

  /// Drops the pending value of a key and cancels its asynchronous run in flight.
  ///
  /// A dropped value is freed before this method returns.
  @discardableResult
  public func cancel(forKey key: Key) -> CancelOutcome {
    lazyEngine.object?.cancel(key) ?? .nothing
  }

  /// Drops all pending values and cancels asynchronous runs in flight.
  ///
  /// Values are dropped in groups, so that changes on other threads do not wait for all of them;
  /// such a change may be dropped too.
  ///
  /// - Returns: The number of dropped values.
  @inlinable
  @discardableResult
  public func cancelAll() -> Int { lazyEngine.object?.cancelAll() ?? 0 }

  // MARK: Flushes

  /// Handles the pending value of a key now, and returns when that has ended.
  ///
  /// It also waits for a run of the key that is in flight, and then for the value behind it. See
  /// ``flushAll(timeout:)`` for where the value is handled, and for what a flush cannot wait for.
  @discardableResult
  public func flush(forKey key: Key) -> FlushOutcome { lazyEngine.object?.flush(key) ?? .nothing }

  /// Handles all pending values now, once per key, and returns when they and the runs in flight,
  /// with the values behind them, have ended.
  ///
  /// A flush handles values on the calling thread. Asynchronous tasks, tasks of a queue with an
  /// executor that is not made of threads, and all tasks of a flush with a timeout run where they
  /// always do, while the caller waits. Values that are enqueued meanwhile stay pending.
  ///
  /// A flush never waits for itself. Inside a task of this queue it waits only for the runs that it
  /// starts. On the main thread it cannot wait for an asynchronous task of the main actor, and two
  /// tasks cannot wait for each other: it returns the keys that it does not wait for, and writes
  /// them to standard error. ``drain()`` waits without blocking a thread. On a test clock a flush
  /// waits only for asynchronous tasks that it started, until one of them sleeps on the clock.
  ///
  /// - Parameter timeout: How long to wait; `nil` for no limit. A task that blocks longer delays
  ///   the return only if it must run on the caller: on a test clock, for the main actor while its
  ///   thread waits, or on the thread of the queue's own executor.
  /// - Returns: The keys whose values were not handled when the flush returned. These continue.
  @inlinable
  @discardableResult
  public func flushAll(timeout: Duration? = nil) -> [Key] {
    lazyEngine.object?.flushAll(timeout: timeout) ?? []
  }

  /// Another name for ``flushAll(timeout:)``.
  @inlinable
  @discardableResult
  public func executePendingTasks(timeout: Duration? = nil) -> [Key] { flushAll(timeout: timeout) }

  /// Handles all pending values now where they always are, and waits for them and the runs in
  /// flight without blocking a thread.
  ///
  /// Inside a task of this queue it waits only for the runs that it starts. It does not wait for a
  /// task that waits for the caller; it writes the keys of such tasks to standard error. It returns
  /// early when the caller's task is cancelled.
  public func drain() async { await lazyEngine.object?.drain() }

  // MARK: Queries

  /// The number of keys with a pending value.
  public var pendingCount: Int { lazyEngine.object?.pendingCount ?? 0 }

  /// The keys with a pending value, in unspecified order; linear in the number of active keys.
  ///
  /// Changes on other threads do not wait for the whole list. It has all keys that were pending all
  /// the time.
  @inlinable public var pendingKeys: [Key] { lazyEngine.object?.pendingKeys ?? [] }

  /// The pending value of a key, if there is one.
  public func pendingValue(forKey key: Key) -> Value? { lazyEngine.object?.pendingValue(of: key) }

  /// Whether a key has a pending value.
  public func isPending(forKey key: Key) -> Bool { lazyEngine.object?.isPending(key) ?? false }

  /// Whether a value of a key is being handled.
  public func isRunning(forKey key: Key) -> Bool { lazyEngine.object?.isRunning(key) ?? false }

  /// The number of keys that have an index, in use or not yet reclaimed.
  package var nameCount: Int { lazyEngine.object?.nameCount ?? 0 }
}

/// Information about a run.
public struct LastOutRunInfo: Hashable, Sendable {
  /// The number of changes that the value replaced since the key's last run or cancel.
  public let collapsed: Int

  /// The time from the due moment to the start of the run.
  public let lateness: Duration

  @inlinable
  init<Value>(_ run: LastOutCore<Value>.Run, startedAt now: Moment) {
    self.init(collapsed: run.collapsed, lateness: max(.zero, run.due.duration(to: now)))
  }

  @usableFromInline
  init(collapsed: Int, lateness: Duration) {
    self.collapsed = collapsed
    self.lateness = lateness
  }
}

/// The outcome of a cancel.
public enum CancelOutcome: Hashable, Sendable {
  /// The pending task was dropped and its captures are freed.
  case cancelled
  /// The task has already started; if it is asynchronous, it is cancelled.
  case alreadyStarted
  /// Nothing was pending.
  case nothing
}

/// The outcome of a flush.
public enum FlushOutcome: Hashable, Sendable {
  /// The pending task has run.
  case ran
  /// The flush could not wait for the task: the caller is a task of the queue and the key is
  /// running, or the flush would wait for itself. The task runs, or follows when the key's run has
  /// ended.
  case markedDue
  /// Nothing was pending, or it was cancelled while the flush waited.
  case nothing
}

/// An event of a queue's task, for a log.
public enum LastOutEvent<Key: Hashable & Sendable>: Sendable {
  /// A task was enqueued for the key.
  case enqueued(Key)
  /// The enqueued task replaced the pending task of the key.
  case replaced(Key)
  /// The pending task of the key was cancelled.
  case cancelled(Key)
  /// The pending task of the key starts.
  case started(Key)
  /// The task of the key has ended, with an error if it threw one.
  case ended(Key, error: (any Error)?)
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A thread-safe queue of closures under names: it runs only the last one of each name, once the
/// name has been quiet.
///
/// It is a ``LastOutValueQueue`` whose values are closures, and has all methods of it.
public typealias LastOutQueue = LastOutTaskQueue<String>

/// A ``LastOutQueue`` whose keys are of any hashable type.
public typealias LastOutTaskQueue<Key: Hashable & Sendable> = LastOutValueQueue<Key, LastOutTask>

private let defaultQueue = LastOutQueue()

extension LastOutValueQueue where Key == String, Value == LastOutTask {
  /// A queue for the whole program, with the default policy.
  public static var `default`: LastOutQueue { defaultQueue }
}

extension LastOutValueQueue where Value == LastOutTask {
  /// Creates a queue of closures.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own; by default two seconds of quiet.
  ///   - clock: The clock of the queue; by default the machine's monotonic clock, which stops while
  ///     the machine is suspended.
  ///   - executor: Where tasks run; by default threads of the library. With a test clock, tasks
  ///     that are not asynchronous run by default on the thread that advances it.
  ///   - onError: Receives the key and the error that its task threw, where the task ran. Without
  ///     it, errors other than `CancellationError` are written to standard error.
  ///   - log: Receives the events of tasks, on the thread where they happen.
  @inlinable
  public convenience init(
    policy: Policy = .standard,
    clock: any Clock<Duration> = SuspendingClock(),
    executor: LastOutExecutor? = nil,
    onError: (@Sendable (_ key: Key, _ error: any Error) -> Void)? = nil,
    log: (@Sendable (LastOutEvent<Key>) -> Void)? = nil
  ) {
    let onFailure = onError.map { onError in
      { @Sendable (key: Key, _: LastOutTask, error: any Error) in onError(key, error) }
    }
    let report = RunReport<Key, LastOutTask>(onError: onFailure, log: log)
    self.init(policy: policy, clock: clock, executor: executor, log: log) { engine, run, _ in
      report.run(run.value, forKey: engine.key(of: run.key))
    }
  }

  /// Makes `task` the pending task of a key; the task that it replaces never runs and is freed at
  /// once.
  ///
  /// - Parameters:
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task; if it throws, the task has failed and does not run.
  ///   - task: Runs on the queue's executor, or on the caller of a flush; see
  ///     ``flushAll(timeout:)``. An error that it throws is passed to the queue's `onError`.
  /// - Returns: How the task ended, for callers that await it.
  @inlinable
  @discardableResult
  public func enqueue(
    forKey key: Key,
    delay: Duration? = nil,
    onStart: (@Sendable () throws -> Void)? = nil,
    task: @escaping @Sendable () throws -> Void
  ) -> LastOutRun {
    guard let onStart else { return add(.plain(task), forKey: key, delay: delay) }
    let body: @Sendable () throws -> Void = {
      try onStart()
      try task()
    }
    return add(.plain(body), forKey: key, delay: delay)
  }

  /// Makes an asynchronous task the pending task of a key; the run ends when the task returns.
  ///
  /// A closure that is isolated to an actor runs on that actor; others run on the queue's executor.
  ///
  /// - Parameters:
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task; if it throws, the task has failed and does not run.
  ///   - task: Runs as a task that ``cancel(forKey:)``, ``cancelAll()`` and ``LastOutRun/cancel()``
  ///     cancel. An error that it throws is passed to the queue's `onError`.
  /// - Returns: How the task ended, for callers that await it.
  @inlinable
  @discardableResult
  public func enqueue(
    forKey key: Key,
    delay: Duration? = nil,
    onStart: (@Sendable @isolated(any) () async throws -> Void)? = nil,
    task: @escaping @Sendable @isolated(any) () async throws -> Void
  ) -> LastOutRun {
    guard let onStart else { return add(asynchronous(task), forKey: key, delay: delay) }
    let body: LastOutTask.Operation = {
      try await onStart()
      try await task()
    }
    return add(asynchronous(body), forKey: key, delay: delay)
  }

  /// Makes a task that runs on the main actor the pending task of a key.
  ///
  /// - Parameters:
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task; if it throws, the task has failed and does not run.
  ///   - task: Runs on the main actor, whatever the queue's executor.
  /// - Returns: How the task ended, for callers that await it.
  @inlinable
  @discardableResult
  public func enqueue<Failure: Error>(
    forKey key: Key,
    delay: Duration? = nil,
    onStart: (@Sendable @MainActor () throws -> Void)? = nil,
    task: @escaping @Sendable @MainActor () throws(Failure) -> Void
  ) -> LastOutRun {
    guard let onStart else { return add(.main(task), forKey: key, delay: delay) }
    let body: @Sendable @MainActor () throws -> Void = {
      try onStart()
      try task()
    }
    return add(.main(body), forKey: key, delay: delay)
  }

  /// An asynchronous closure; it has the task-local values of the current task, if there is one.
  @inlinable
  func asynchronous(_ task: @escaping LastOutTask.Operation) -> LastOutTask.Body {
    TaskCarrier.isNeeded ? carried(task) : .asynchronous(task)
  }

  @usableFromInline
  func carried(_ task: @escaping LastOutTask.Operation) -> LastOutTask.Body {
    .carried(CarriedOperation(task, priority: executor?.place.priority))
  }

  @inlinable
  @inline(__always)
  func add(_ body: LastOutTask.Body, forKey key: Key, delay: Duration?) -> LastOutRun {
    var body = body
    log?(.enqueued(key))
    let (run, hasReplaced) = withEngine { $0.enqueue(&body, for: key, delay: delay) }
    if hasReplaced { log?(.replaced(key)) }
    return run
  }
}

/// A closure that waits in a ``LastOutQueue``.
@frozen
public struct LastOutTask: Sendable {
  @usableFromInline typealias Operation = @Sendable @isolated(any) () async throws -> Void

  /// The kinds of closures.
  @usableFromInline
  @frozen
  enum Body: Sendable {
    case plain(@Sendable () throws -> Void)
    case main(@Sendable @MainActor () throws -> Void)
    case asynchronous(Operation)
    case carried(CarriedOperation)
  }

  @usableFromInline var body: Body
  /// The result of its enqueue.
  @usableFromInline var run: LastOutRun

  @inlinable
  init(body: Body, run: LastOutRun) {
    self.body = body
    self.run = run
  }

  /// Whether no caller has the run, so that a newer task can use it.
  @inlinable
  mutating func isUnheld() -> Bool { isKnownUniquelyReferenced(&run) }
}

/// Runs a value in one of three ways, and reports its start, its end and its error.
@usableFromInline
@frozen
struct RunReport<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let onError: (@Sendable (Key, Value, any Error) -> Void)?
  @usableFromInline let log: (@Sendable (LastOutEvent<Key>) -> Void)?

  @inlinable
  init(
    onError: (@Sendable (Key, Value, any Error) -> Void)?,
    log: (@Sendable (LastOutEvent<Key>) -> Void)?
  ) {
    self.onError = onError
    self.log = log
  }

  @inlinable
  func started(_ key: Key) { log?(.started(key)) }

  /// Reports the end of a run; a cancellation is an error only to a caller that receives errors.
  @inlinable
  func ended(_ key: Key, _ value: Value, error: (any Error)? = nil) {
    if let error {
      if let onError {
        onError(key, value, error)
      } else if !(error is CancellationError) {
        Self.write(error, of: key)
      }
    }
    log?(.ended(key, error: error))
  }

  @usableFromInline
  static func write(_ error: any Error, of key: Key) {
    StandardError.write("the task of key \"\(key)\" threw: \(error)")
  }

  /// Continues the current run as an asynchronous task, which ends the run.
  @usableFromInline
  func runTask(
    _ value: Value,
    forKey key: Key,
    as handle: LastOutRun? = nil,
    isolation: (any Actor)?,
    carried: CarriedOperation? = nil,
    _ body: @escaping @Sendable () async throws -> Void
  ) {
    RunTasks.begin(handle, isolation: isolation, carried) {
      started(key)
      var failure: (any Error)?
      do { try await body() } catch { failure = error }
      ended(key, value, error: failure)
      handle?.end(.ending(failure, isCancelled: Task.isCancelled))
    }
  }

  /// Runs `body` on the main actor: at once on the main thread, or later.
  @usableFromInline
  func runOnMain(
    _ value: Value,
    forKey key: Key,
    as handle: LastOutRun? = nil,
    _ body: @escaping @Sendable @MainActor () throws -> Void
  ) {
    let rest: @Sendable () -> Void = {
      run(value, forKey: key, as: handle) { try MainActor.assumeIsolated { try body() } }
    }
    if Thread.isMain { rest() } else { RunTasks.beginOnMain(handle, rest) }
  }

  /// Runs `body` on the calling thread.
  @inlinable
  func run(_ value: Value, forKey key: Key, as handle: LastOutRun? = nil, _ body: () throws -> Void)
  {
    started(key)
    var failure: (any Error)?
    do { try body() } catch { failure = error }
    ended(key, value, error: failure)
    handle?.end(failure)
  }
}

extension RunReport where Value == LastOutTask {
  @usableFromInline
  func run(_ task: LastOutTask, forKey key: Key, _ carried: CarriedOperation) {
    let body = carried.operation
    runTask(task, forKey: key, as: task.run, isolation: body.isolation, carried: carried) {
      try await body()
    }
  }

  /// Runs the closure of a task.
  @inlinable
  func run(_ task: LastOutTask, forKey key: Key) {
    switch task.body {
    case .plain(let body): run(task, forKey: key, as: task.run, body)
    case .main(let body): runOnMain(task, forKey: key, as: task.run, body)
    case .asynchronous(let body):
      runTask(task, forKey: key, as: task.run, isolation: body.isolation) { try await body() }
    case .carried(let carried): run(task, forKey: key, carried)
    }
  }
}

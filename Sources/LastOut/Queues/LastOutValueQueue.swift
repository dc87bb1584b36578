// Settle
// SPDX-License-Identifier: Apache-2.0

/// A thread-safe queue of values that handles only the last value of each key.
///
/// Unlike ``LastOutQueue``, it has one handler for all values, and a change does not allocate.
///
/// ```swift
/// let queue = LastOutValueQueue<DeviceID, Int>(policy: .live) { device, brightness, _ in
///   try await lamp(device).send(brightness)
/// }
/// queue.enqueue(40, forKey: .deskLamp)
/// ```
public final class LastOutValueQueue<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let engine: QueueEngine<Key, Value>

  /// Creates a queue with a synchronous handler.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own; by default two seconds of quiet.
  ///   - clock: The clock of the queue; by default the machine's monotonic clock.
  ///   - executor: Where the handler runs; by default threads of the library, or with a test clock
  ///     the thread that advances it.
  ///   - onError: Receives the key and the error that the handler threw. Without it, errors are
  ///     written to standard error.
  ///   - handler: Receives a key, its newest value, and information about the run.
  @inlinable
  public init(
    policy: Policy = .standard,
    clock: any Clock<Duration> = SuspendingClock(),
    executor: LastOutExecutor? = nil,
    onError: (@Sendable (_ key: Key, _ error: any Error) -> Void)? = nil,
    handler: @escaping @Sendable (_ key: Key, _ value: Value, _ info: LastOutRunInfo) throws -> Void
  ) {
    let onError = onError ?? Self.report
    engine = QueueEngine(
      policy: policy,
      time: clock.timekeeper(),
      place: executor?.place ?? clock.defaultPlace
    ) { engine, run, now in
      let key = engine.key(of: run.key)
      do {
        try handler(key, run.value, LastOutRunInfo(run, startedAt: now))
      } catch {
        onError(key, error)
      }
    }
  }

  /// Creates a queue with an asynchronous handler: the run of a key ends when the handler returns.
  ///
  /// - Parameters:
  ///   - policy: The policy of keys without their own; by default two seconds of quiet.
  ///   - clock: The clock of the queue; by default the machine's monotonic clock.
  ///   - onError: Receives the key and the error that the handler threw. Without it, errors are
  ///     written to standard error.
  ///   - handler: Receives a key, its newest value, and information about the run. It runs as a
  ///     task that ``cancelAll()`` cancels.
  public init(
    policy: Policy = .standard,
    clock: any Clock<Duration> = SuspendingClock(),
    onError: (@Sendable (_ key: Key, _ error: any Error) -> Void)? = nil,
    handler:
      @escaping @Sendable (_ key: Key, _ value: Value, _ info: LastOutRunInfo) async throws -> Void
  ) {
    let onError = onError ?? Self.report
    engine = QueueEngine(policy: policy, time: clock.timekeeper(), place: clock.defaultPlace) {
      engine,
      run,
      now in
      let key = engine.key(of: run.key)
      let info = LastOutRunInfo(run, startedAt: now)
      let value = run.value
      AsyncRuns.detach {
        do {
          try await handler(key, value, info)
        } catch {
          onError(key, error)
        }
      }
    }
  }

  @usableFromInline
  static func report(key: Key, error: any Error) {
    StandardError.write("the handler threw for key \(key): \(error)")
  }

  /// Sets the policy of a key, from its next change on.
  public func setPolicy(_ policy: Policy, forKey key: Key) {
    engine.setPolicy(policy, for: key)
  }

  // MARK: Changes

  /// Makes `value` the pending value of a key; the value that it replaces is freed at once.
  ///
  /// - Parameters:
  ///   - value: The value for the handler, unless a newer one replaces it.
  ///   - key: The key that changes.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  @inlinable
  public func enqueue(_ value: Value, forKey key: Key, delay: Duration? = nil) {
    engine.enqueue(value, for: key, delay: delay)
  }

  /// Drops the pending value of a key; the value is freed before this method returns.
  @discardableResult
  public func cancel(forKey key: Key) -> CancelOutcome {
    engine.cancel(key)
  }

  /// Drops all pending values and cancels running asynchronous handlers.
  ///
  /// - Returns: The number of dropped values.
  @discardableResult
  public func cancelAll() -> Int {
    engine.cancelAll()
  }

  /// Handles the pending value of a key on the calling thread, and returns when that has ended.
  ///
  /// If the key is already running, its pending value is handled after that instead.
  @discardableResult
  public func flush(forKey key: Key) -> FlushOutcome {
    engine.flush(key)
  }

  /// Handles all pending values, once per key, on the calling thread, and waits for the running
  /// handlers and the values queued behind them.
  ///
  /// Values that are enqueued meanwhile stay pending. Inside the handler it handles the pending values
  /// and does not wait.
  ///
  /// - Parameter timeout: How long to handle values and to wait; `nil` for no limit.
  /// - Returns: The keys whose values were not handled when the timeout passed; these continue.
  @inlinable
  @discardableResult
  public func flushAll(timeout: Duration? = nil) -> [Key] {
    engine.flushAll(timeout: timeout)
  }

  /// Handles all pending values, and waits for them and running handlers without blocking a thread.
  ///
  /// Inside the handler it does not wait. It returns early when the caller's task is cancelled.
  public func drain() async {
    await engine.drain()
  }

  // MARK: Queries

  /// The number of keys with a pending value.
  public var pendingCount: Int { engine.pendingCount }

  /// The keys with a pending value, in unspecified order.
  public var pendingKeys: [Key] { engine.pendingKeys }

  /// The pending value of a key, if there is one.
  public func pendingValue(forKey key: Key) -> Value? { engine.pendingValue(of: key) }

  /// Whether a key has a pending value.
  public func isPending(forKey key: Key) -> Bool { engine.isPending(key) }

  /// Whether a value of a key is being handled.
  public func isRunning(forKey key: Key) -> Bool { engine.isRunning(key) }

  /// The number of keys that have an index, in use or not yet reclaimed.
  package var nameCount: Int { engine.nameCount }
}

/// Information about a run.
public struct LastOutRunInfo: Hashable, Sendable {
  /// The number of changes that the value replaced since the key's last run or cancel.
  public let collapsed: Int

  /// The time from the due moment to the start of the run.
  public let lateness: Duration

  @inlinable
  init<Value>(_ run: LastOutCore<Value>.Run, startedAt now: Moment) {
    collapsed = run.collapsed
    lateness = max(.zero, run.due.duration(to: now))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A thread-safe queue of values, of which only the last one of a key is handled.
///
/// It is to ``LastOutQueue`` what a function is to many closures: the handler is given once, and a
/// change costs no allocation.
///
/// ```swift
/// let queue = LastOutValueQueue<DeviceID, Int>(policy: .live) { device, brightness, _ in
///   try await lamp(device).send(brightness)
/// }
/// queue.enqueue(40, forKey: .deskLamp)
/// ```
public final class LastOutValueQueue<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let engine: QueueEngine<Key, Value>

  /// Creates a queue whose handler returns when a value has been handled.
  ///
  /// - Parameters:
  ///   - policy: How keys settle that have no policy of their own; two seconds of quiet.
  ///   - clock: What the queue lives by: the machine's monotonic clock.
  ///   - executor: Where the handler runs: threads of the library's own, or with a test clock the
  ///     thread that moves it.
  ///   - onError: Receives the key and what the handler threw. Without it, a line is written to
  ///     standard error.
  ///   - handler: Receives a key, its newest value, and what is known of the run.
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
    ) { engine, run in
      let key = engine.key(of: run.key)
      do {
        try handler(key, run.value, engine.info(of: run))
      } catch {
        onError(key, error)
      }
    }
  }

  /// Creates a queue with an asynchronous handler: the run of a key ends when the handler returns.
  ///
  /// - Parameters:
  ///   - policy: How keys settle that have no policy of their own; two seconds of quiet.
  ///   - clock: What the queue lives by: the machine's monotonic clock.
  ///   - onError: Receives the key and what the handler threw. Without it, a line is written to
  ///     standard error.
  ///   - handler: Receives a key, its newest value, and what is known of the run. It runs as a task
  ///     that ``cancelAll()`` cancels.
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
      run in
      let key = engine.key(of: run.key)
      let info = engine.info(of: run)
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

  /// Sets how a key settles, from its next change on.
  public func setPolicy(_ policy: Policy, forKey key: Key) {
    engine.setPolicy(policy, for: key)
  }

  // MARK: Changes

  /// Makes `value` the pending value of a key; the one it replaces is freed at once.
  ///
  /// - Parameters:
  ///   - value: What the handler receives unless something newer replaces it.
  ///   - key: Whose change it is.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  @inlinable
  public func enqueue(_ value: Value, forKey key: Key, delay: Duration? = nil) {
    engine.enqueue(value, for: key, delay: delay)
  }

  /// Drops the pending value of a key before returning.
  @discardableResult
  public func cancel(forKey key: Key) -> CancelOutcome {
    engine.cancel(key)
  }

  /// Drops all pending values and cancels asynchronous handlers that run.
  ///
  /// - Returns: How many values were dropped.
  @discardableResult
  public func cancelAll() -> Int {
    engine.cancelAll()
  }

  /// Handles the pending value of a key on the caller and returns when that is done.
  ///
  /// If the key is running elsewhere, its pending value follows there instead.
  @discardableResult
  public func flush(forKey key: Key) -> FlushOutcome {
    engine.flush(key)
  }

  /// Handles what is pending now, once per key, on the caller, and waits for the runs in flight and
  /// the values that wait behind them.
  ///
  /// What is enqueued meanwhile stays pending. Called inside the handler it handles what is pending
  /// and waits for nothing.
  ///
  /// - Parameter timeout: When to stop handling values and waiting; `nil` waits without end.
  /// - Returns: The keys whose values had not been handled when the time was over; they go on.
  @inlinable
  @discardableResult
  public func flushAll(timeout: Duration? = nil) -> [Key] {
    engine.flushAll(timeout: timeout)
  }

  /// Has what is pending now handled, and waits for it and for the runs in flight, without blocking.
  ///
  /// Called inside the handler it waits for nothing. Returns early when the caller's task is
  /// cancelled.
  public func drain() async {
    await engine.drain()
  }

  // MARK: Questions

  /// How many keys have a pending value.
  public var pendingCount: Int { engine.pendingCount }

  /// The keys with a pending value, in no promised order.
  public var pendingKeys: [Key] { engine.pendingKeys }

  /// The pending value of a key, if there is one.
  public func pendingValue(forKey key: Key) -> Value? { engine.pendingValue(of: key) }

  /// Whether a value of a key waits.
  public func isPending(forKey key: Key) -> Bool { engine.isPending(key) }

  /// Whether a value of a key is being handled.
  public func isRunning(forKey key: Key) -> Bool { engine.isRunning(key) }

  /// How many keys have a name, in use or not yet given back.
  package var nameCount: Int { engine.nameCount }
}

extension QueueEngine {
  /// What a run that starts now knows of its value.
  @inlinable
  func info(of run: LastOutCore<Value>.Run) -> LastOutRunInfo {
    LastOutRunInfo(collapsed: run.collapsed, lateness: max(.zero, run.due.duration(to: now)))
  }
}

/// What a run knows of its value.
public struct LastOutRunInfo: Hashable, Sendable {
  /// Changes that the value replaced since the key's last run or cancel.
  public let collapsed: Int

  /// The time from the moment at which the value was due to its start.
  public let lateness: Duration

  @inlinable
  init(collapsed: Int, lateness: Duration) {
    self.collapsed = collapsed
    self.lateness = lateness
  }
}

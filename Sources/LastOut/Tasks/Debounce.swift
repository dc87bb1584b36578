// Settle
// SPDX-License-Identifier: Apache-2.0

/// Creates a function that runs only its last task, once it has not been called for `delay`.
///
/// - Parameters:
///   - delay: The quiet period; negative counts as zero.
///   - clock: The clock; by default the machine's monotonic clock.
/// - Returns: A callable value for use from any thread.
public func debounce(
  delay: Duration,
  clock: any Clock<Duration> = SuspendingClock()
) -> Debounce {
  Debounce(policy: Policy(delay: delay), clock: clock)
}

/// A function that runs only its last task, once that has settled.
///
/// Each call replaces the pending task, which is freed at once. Tasks run on threads of the library
/// and never overlap; an error that one throws is written to standard error. Copies share one
/// pending task; releasing all of them does not stop it.
public struct Debounce: Sendable {
  private static var key: UInt8 { 0 }

  private let queue: LastOutTaskQueue<UInt8>

  /// Creates a function that collapses its calls by `policy`.
  ///
  /// - Parameters:
  ///   - policy: When the pending task settles.
  ///   - clock: The clock; by default the machine's monotonic clock.
  public init(policy: Policy, clock: any Clock<Duration> = SuspendingClock()) {
    let report = RunReport<String, LastOutTask>(onError: nil, log: nil)
    queue = LastOutTaskQueue(
      policy: policy,
      clock: clock,
      executor: nil,
      log: nil,
      keepsPending: true
    ) { _, run, _ in
      report.run(run.value, forKey: "debounced function")
    }
  }

  /// Makes `task` the pending task.
  ///
  /// - Returns: How the task ended, for callers that await it.
  @discardableResult
  public func callAsFunction(_ task: @escaping @Sendable () throws -> Void) -> LastOutRun {
    add(.plain(task))
  }

  /// Makes an asynchronous task the pending task.
  ///
  /// - Returns: How the task ended, for callers that await it.
  @discardableResult
  public func callAsFunction(
    _ task: @escaping @Sendable @isolated(any) () async throws -> Void
  ) -> LastOutRun {
    add(LastOutTask.Body(asynchronous: task))
  }

  /// Makes a task that runs on the main actor the pending task.
  ///
  /// - Returns: How the task ended, for callers that await it.
  @discardableResult
  public func callAsFunction<Failure: Error>(
    _ task: @escaping @Sendable @MainActor () throws(Failure) -> Void
  ) -> LastOutRun {
    add(.main(task))
  }

  /// Drops the pending task, whose captures are freed before this method returns, and cancels an
  /// asynchronous task that runs.
  @discardableResult
  public func cancel() -> CancelOutcome { queue.cancel(forKey: Self.key) }

  /// Runs the pending task now, and returns when it has ended.
  ///
  /// See ``LastOutValueQueue/flush(forKey:)``.
  @discardableResult
  public func flush() -> FlushOutcome { queue.flush(forKey: Self.key) }

  /// Whether a task is pending.
  public var isPending: Bool { queue.isPending(forKey: Self.key) }

  private func add(_ body: LastOutTask.Body) -> LastOutRun {
    var body = body
    return queue.withEngine { $0.enqueue(&body, for: Self.key, delay: nil).run }
  }
}

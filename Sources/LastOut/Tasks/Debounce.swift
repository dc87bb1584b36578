// Settle
// SPDX-License-Identifier: Apache-2.0

/// Makes a function that runs only the last task it was given, once it was not called for `delay`.
///
/// - Parameters:
///   - delay: The quiet period; negative counts as zero.
///   - clock: What the delay is measured by: the machine's monotonic clock.
/// - Returns: What is called like a function, from any thread.
public func debounce(
  delay: Duration,
  clock: any Clock<Duration> = SuspendingClock()
) -> Debounce {
  Debounce(policy: Policy(delay: delay), clock: clock)
}

/// A function that runs only the last task it was given, once its policy lets it leave.
///
/// Each call replaces the pending task, which is freed at once. Tasks run on threads of the library's
/// own and never overlap. Copies share one pending task, and letting go of all of them does not stop
/// it.
public struct Debounce: Sendable {
  private static var key: Int { 0 }

  private let engine: TaskEngine

  /// Creates a function that collapses its calls by `policy`.
  ///
  /// - Parameters:
  ///   - policy: When the pending task runs.
  ///   - clock: What times are measured by: the machine's monotonic clock.
  public init(policy: Policy, clock: any Clock<Duration> = SuspendingClock()) {
    engine = .make(policy: policy, time: clock.timekeeper(), place: clock.defaultPlace)
  }

  /// Makes `task` the pending task.
  public func callAsFunction(_ task: @escaping @Sendable () -> Void) {
    // The pending task keeps the engine, so that it runs even when nobody holds the function.
    engine.enqueue(
      Job { [engine] in withExtendedLifetime(engine) { task() } },
      for: Self.key,
      delay: nil
    )
  }

  /// Drops the pending task, and what it captured, before returning.
  @discardableResult
  public func cancel() -> CancelOutcome { engine.cancel(Self.key) }

  /// Runs the pending task on the caller now; one that runs elsewhere is followed there instead.
  @discardableResult
  public func flush() -> FlushOutcome { engine.flush(Self.key) }

  /// Whether a task waits.
  public var isPending: Bool { engine.isPending(Self.key) }
}

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
/// and never overlap. Copies share one pending task; releasing all of them does not stop it.
public struct Debounce: Sendable {
  private static var key: Int { 0 }

  private let engine: TaskEngine

  /// Creates a function that collapses its calls by `policy`.
  ///
  /// - Parameters:
  ///   - policy: When the pending task settles.
  ///   - clock: The clock; by default the machine's monotonic clock.
  public init(policy: Policy, clock: any Clock<Duration> = SuspendingClock()) {
    engine = .make(policy: policy, time: clock.timekeeper(), place: clock.defaultPlace)
  }

  /// Makes `task` the pending task.
  public func callAsFunction(_ task: @escaping @Sendable () -> Void) {
    // The pending task retains the engine, so it runs even if the function is released.
    engine.enqueue(
      Job { [engine] in withExtendedLifetime(engine) { task() } },
      for: Self.key,
      delay: nil
    )
  }

  /// Drops the pending task; its captures are freed before this method returns.
  @discardableResult
  public func cancel() -> CancelOutcome { engine.cancel(Self.key) }

  /// Runs the pending task on the calling thread, or after the task that is already running.
  @discardableResult
  public func flush() -> FlushOutcome { engine.flush(Self.key) }

  /// Whether a task is pending.
  public var isPending: Bool { engine.isPending(Self.key) }
}

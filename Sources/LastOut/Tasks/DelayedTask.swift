// Settle
// SPDX-License-Identifier: Apache-2.0

/// A closure that runs once, after a delay, unless it is cancelled first.
///
/// Releasing the object, or assigning another task to the same variable, neither cancels nor delays
/// the task.
public final class DelayedTask: Sendable {
  private let task: SingleTask
  private let engine: TaskEngine
  private let key: Int

  /// Schedules `task` to run on a thread of the library.
  ///
  /// - Parameters:
  ///   - delay: How long to wait; negative counts as zero.
  ///   - clock: The clock; by default the machine's monotonic clock.
  ///   - task: The task. It is freed when it has run or is cancelled.
  @discardableResult
  public convenience init(
    after delay: Duration,
    clock: any Clock<Duration> = SuspendingClock(),
    task: @escaping @Sendable () -> Void
  ) {
    self.init(after: delay, engine: .tasks(on: clock), task: task)
  }

  init(after delay: Duration, engine: TaskEngine, task: @escaping @Sendable () -> Void) {
    let single = SingleTask(task)
    self.task = single
    self.engine = engine
    key = TaskEngine.newKey()
    engine.enqueue(
      Job { [engine] in withExtendedLifetime(engine) { _ = single.run() } },
      for: key,
      delay: delay
    )
  }

  /// Drops the task; its captures are freed before this method returns.
  ///
  /// - Returns: `cancelled`; `alreadyStarted` if the task has started or ended; `nothing` if it was
  ///   cancelled before.
  @discardableResult
  public func cancel() -> CancelOutcome {
    let outcome = task.cancel()
    if outcome == .cancelled { _ = engine.cancel(key) }
    return outcome
  }

  /// Runs the task on the calling thread, unless it has started or is cancelled.
  ///
  /// - Returns: Whether this call ran it.
  @discardableResult
  public func runNow() -> Bool {
    guard task.run() else { return false }
    _ = engine.cancel(key)
    return true
  }
}

/// A closure that runs at most once, on the first thread that calls it.
final class SingleTask: Sendable {
  private enum State: Sendable {
    case waiting(@Sendable () -> Void)
    case started
    case cancelled
  }

  private let state: Locked<State>

  init(_ task: @escaping @Sendable () -> Void) {
    state = Locked(.waiting(task))
  }

  /// Runs the closure on the calling thread; `false` if it has started or is cancelled.
  func run() -> Bool {
    let task = state.withLock { state -> (@Sendable () -> Void)? in
      guard case .waiting(let task) = state else { return nil }
      state = .started
      return task
    }
    guard let task else { return false }
    task()
    return true
  }

  func cancel() -> CancelOutcome {
    // The captures are freed outside the lock, with the former state.
    let former = state.withLock { state in
      let former = state
      if case .waiting = former { state = .cancelled }
      return former
    }
    switch former {
    case .waiting: return .cancelled
    case .started: return .alreadyStarted
    case .cancelled: return .nothing
    }
  }
}

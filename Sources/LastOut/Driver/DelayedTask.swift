// Settle
// SPDX-License-Identifier: Apache-2.0

private import Synchronization

/// A closure that runs once, after a delay, unless it is cancelled first.
///
/// Each task stands for itself: letting go of the object, or putting another task into the same
/// variable, neither cancels nor delays it.
public final class DelayedTask: Sendable {
  private let lease: KeyLease
  private let wasCancelled = Atomic(false)

  /// Schedules `task` to run on a concurrent pool.
  ///
  /// - Parameters:
  ///   - delay: How long to wait; negative counts as zero.
  ///   - task: What to run. It is freed when it has run or was cancelled.
  @discardableResult
  public convenience init(after delay: Duration, task: @escaping @Sendable () -> Void) {
    self.init(after: delay, engine: .shared, task: task)
  }

  package init(
    after delay: Duration,
    engine: QueueEngine,
    task: @escaping @Sendable () -> Void
  ) {
    lease = KeyLease(engine)
    lease.enqueue(after: delay, task)
  }

  /// Drops the task, and what it captured, before returning.
  ///
  /// - Returns: `cancelled`; `alreadyStarted` if the task has started or ended; `nothing` if it was
  ///   cancelled before.
  @discardableResult
  public func cancel() -> CancelOutcome {
    switch lease.cancel() {
    case .cancelled:
      wasCancelled.store(true, ordering: .releasing)
      return .cancelled
    case .alreadyStarted: return .alreadyStarted
    case .nothing:
      return wasCancelled.load(ordering: .acquiring) ? .nothing : .alreadyStarted
    }
  }

  /// Runs the task on the caller now, unless it has started already or was cancelled.
  ///
  /// - Returns: Whether this call ran it.
  @discardableResult
  public func runNow() -> Bool {
    lease.flush() == .ran
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// One task of a queue: how it ended, and a way to cancel it.
///
/// The queue owns the task; releasing this object has no effect.
public final class LastOutRun: Sendable {
  /// How a task ended.
  public enum Outcome: Sendable {
    /// The task returned.
    case completed
    /// The task, or its `onStart`, threw.
    case failed(any Error)
    /// The task never ran: a newer one replaced it, its policy drops it, or its queue was released.
    case dropped
    /// The task was cancelled: it never ran, or it threw a `CancellationError`.
    case cancelled
  }

  // While the task is pending or running, the engine refers to this object, too.
  private let owner: any RunOwner
  private let key: KeyIndex
  private let ending = LazyReference<RunEnding>()

  @usableFromInline
  init(owner: any RunOwner, key: KeyIndex) {
    self.owner = owner
    self.key = key
  }

  /// How the task ended; suspends until then, also if the caller is cancelled.
  public var outcome: Outcome {
    get async {
      await withCheckedContinuation { continuation in
        let wait = OutcomeWait(run: self, continuation: continuation)
        if !owner.add(wait, for: key) { wait.resume() }
      }
    }
  }

  /// Drops the task if it is pending, or cancels it if it is asynchronous and running.
  ///
  /// A newer task of the key is not affected. The captures of a dropped task are freed before this
  /// method returns.
  ///
  /// - Returns: `cancelled` if the task was dropped; `alreadyStarted` if it has started or ended;
  ///   `nothing` if it never ran and never will.
  @discardableResult
  public func cancel() -> CancelOutcome { owner.cancel(self, of: key) }

  /// Whether the task never ran and never will.
  var isDropped: Bool { ending.object.map { !$0.hasStarted } ?? false }

  /// How the task ended; `nil` until then.
  var result: Outcome? { ending.object?.outcome }

  /// Records that the task returned or threw.
  @usableFromInline
  func end(_ failure: (any Error)?) { end(.ending(failure, isCancelled: false)) }

  /// Records how the task ended, once.
  @usableFromInline
  func end(_ ending: RunEnding) { _ = self.ending.setIfNil(ending) }
}

/// How a task ended, as an object.
@usableFromInline
final class RunEnding: Sendable {
  static let completed = RunEnding(.completed)
  @usableFromInline static let dropped = RunEnding(.dropped, hasStarted: false)
  @usableFromInline static let cancelled = RunEnding(.cancelled, hasStarted: false)

  let outcome: LastOutRun.Outcome
  /// Whether the task had started.
  let hasStarted: Bool

  private init(_ outcome: LastOutRun.Outcome, hasStarted: Bool = true) {
    self.outcome = outcome
    self.hasStarted = hasStarted
  }

  /// The end of a task that returned or threw.
  static func ending(_ failure: (any Error)?, isCancelled: Bool) -> RunEnding {
    guard let failure else { return completed }
    return RunEnding(isCancelled && failure is CancellationError ? .cancelled : .failed(failure))
  }
}

/// A caller that waits for the outcome of a task.
@usableFromInline
@frozen
struct OutcomeWait: Sendable {
  let run: LastOutRun
  let continuation: CheckedContinuation<LastOutRun.Outcome, Never>

  /// Continues the caller; the task must have ended.
  func resume() { continuation.resume(returning: run.result ?? .dropped) }
}

/// An engine as a ``LastOutRun`` sees it.
@usableFromInline
protocol RunOwner: AnyObject, Sendable {
  /// Records a wait; `false` if the task has ended.
  func add(_ wait: OutcomeWait, for key: KeyIndex) -> Bool

  /// Drops or cancels the task of `key` that has this run.
  func cancel(_ run: LastOutRun, of key: KeyIndex) -> CancelOutcome
}

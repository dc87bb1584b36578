// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// One task of a queue: how it ended, and a way to cancel it.
///
/// The queue owns the task; releasing this value has no effect.
public struct LastOutRun: Sendable {
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

  let owner: any RunOwner
  let key: KeyIndex
  let token: RunToken

  /// How the task ended; suspends until then, also if the caller is cancelled.
  public var outcome: Outcome {
    get async {
      await withCheckedContinuation { continuation in
        let wait = OutcomeWait(token: token, continuation: continuation)
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
  public func cancel() -> CancelOutcome { owner.cancel(token, of: key) }
}

/// The identity and the outcome of a task.
@usableFromInline
package final class RunToken: Sendable {
  private let ending = AtomicLazyReference<RunEnding>()

  /// How the task ended; `nil` until then.
  var outcome: LastOutRun.Outcome? { ending.load()?.outcome }

  /// Records how the task ended, once.
  func end(_ ending: RunEnding) { _ = self.ending.storeIfNil(ending) }
}

/// How a task ended, as an object.
final class RunEnding: Sendable {
  static let completed = RunEnding(.completed)
  static let dropped = RunEnding(.dropped)
  static let cancelled = RunEnding(.cancelled)

  let outcome: LastOutRun.Outcome

  init(_ outcome: LastOutRun.Outcome) {
    self.outcome = outcome
  }
}

/// A caller that waits for the outcome of a task.
@usableFromInline
struct OutcomeWait: Sendable {
  let token: RunToken
  let continuation: CheckedContinuation<LastOutRun.Outcome, Never>

  /// Continues the caller; the task must have ended.
  func resume() { continuation.resume(returning: token.outcome ?? .dropped) }
}

/// An engine as a ``LastOutRun`` sees it.
protocol RunOwner: AnyObject, Sendable {
  /// Records a wait; `false` if the task has ended.
  func add(_ wait: OutcomeWait, for key: KeyIndex) -> Bool

  /// Drops or cancels the task of `key` that has `token`.
  func cancel(_ token: RunToken, of key: KeyIndex) -> CancelOutcome
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The time that an engine lives by, and the place where its tasks run.
package protocol Timekeeper: AnyObject, Sendable {
  /// The current moment; it never goes back.
  var now: Moment { get }

  /// Names the engine to serve, which is not kept alive; called once, before anything else.
  func attach(_ engine: QueueEngine)

  /// Has ``QueueEngine/service()`` called at `deadline` at the latest.
  func wake(at deadline: Moment)

  /// Runs `task`, without a lock held.
  func perform(_ task: @escaping @Sendable () -> Void)

  /// The engine is gone: nothing will be served any more.
  func stop()
}

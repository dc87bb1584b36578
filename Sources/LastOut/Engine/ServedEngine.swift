// Settle
// SPDX-License-Identifier: Apache-2.0

/// Work for a thread of a pool.
@usableFromInline
package protocol PoolWork: AnyObject, Sendable {
  /// Runs what was assigned, on the calling thread.
  func work()
}

/// An engine as timekeepers, runs and waits see it, independent of its keys and values.
@usableFromInline
package protocol ServedEngine: PoolWork {
  /// The earliest time at which ``service()`` has work; `nil` for never.
  var nextDeadline: Moment? { get }

  /// Starts due values; returns when to call again.
  func service() -> Moment?

  /// Ends a run of `key` that outlived the call that started it.
  func end(_ key: KeyIndex)

  /// Records that the run of `key` becomes a task.
  func beginTask(
    of key: KeyIndex,
    _ needs: TaskNeeds,
    awaited: inout Awaited
  ) -> TaskPlan

  /// Passes the engine the task of the run of `key`, to cancel it.
  func own(_ task: Task<Void, Never>, of key: KeyIndex, number: Int)

  /// What each key that a waiter waits for needs to end.
  func needs(of waiter: Waiter) -> [KeyIndex: [WaitNode]]

  /// Makes a waiter not wait for some keys, and returns their names.
  func refuse(_ keys: Set<KeyIndex>, of waiter: Waiter) -> String
}

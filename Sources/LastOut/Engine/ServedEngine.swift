// Settle
// SPDX-License-Identifier: Apache-2.0

/// An engine as timekeepers and runs see it, independent of its keys and values.
@usableFromInline
package protocol ServedEngine: AnyObject, Sendable {
  /// The earliest time at which ``service()`` has work; `nil` for never.
  var nextDeadline: Moment? { get }

  /// Starts due values; returns when to call again.
  func service() -> Moment?

  /// Runs an assigned value on the calling thread.
  func work()

  /// Ends a run of `key` that outlived the call that started it.
  func end(_ key: KeyIndex)

  /// Passes the engine the task of the run of `key`, to cancel it.
  func own(_ task: OwnedTask, for key: KeyIndex)
}

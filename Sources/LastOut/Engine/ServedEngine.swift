// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a timekeeper and a run know of an engine, whatever its keys and values are.
@usableFromInline
package protocol ServedEngine: AnyObject, Sendable {
  /// The earliest moment at which ``service()`` has something to do; `nil` for never.
  var nextDeadline: Moment? { get }

  /// Starts what is due; returns when to call again.
  func service() -> Moment?

  /// Runs what was assigned to a thread, on that thread.
  func work()

  /// Ends a run of `key` that outlived the call that started it.
  func end(_ key: KeyIndex)

  /// Lets the engine cancel the task that the run of `key` became.
  func own(_ task: OwnedTask, for key: KeyIndex)
}

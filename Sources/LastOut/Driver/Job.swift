// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a key does when it leaves.
package struct Job: Sendable {
  /// Called right before the task.
  package let onStart: (@Sendable () -> Void)?
  package let task: @Sendable () throws -> Void

  package init(onStart: (@Sendable () -> Void)? = nil, task: @escaping @Sendable () throws -> Void)
  {
    self.onStart = onStart
    self.task = task
  }
}

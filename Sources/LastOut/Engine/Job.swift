// Settle
// SPDX-License-Identifier: Apache-2.0

/// The task of a key.
struct Job: Sendable {
  /// Called right before the task.
  let onStart: (@Sendable () -> Void)?
  /// Whether the task only starts an asynchronous one.
  let isAsynchronous: Bool
  let task: @Sendable () throws -> Void

  init(
    onStart: (@Sendable () -> Void)? = nil,
    isAsynchronous: Bool = false,
    task: @escaping @Sendable () throws -> Void
  ) {
    self.onStart = onStart
    self.isAsynchronous = isAsynchronous
    self.task = task
  }
}

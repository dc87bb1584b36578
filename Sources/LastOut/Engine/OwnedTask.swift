// Settle
// SPDX-License-Identifier: Apache-2.0

/// A running task that can be cancelled, even before it is assigned.
@usableFromInline
package final class OwnedTask: Sendable {
  private struct State: ~Copyable {
    var task: Task<Void, Never>?
    var isCancelled = false
  }

  private let state = Locked(State())

  func own(_ task: Task<Void, Never>) {
    let isLate = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isLate { task.cancel() }
  }

  func cancel() {
    let task = state.withLock { state in
      state.isCancelled = true
      return state.task
    }
    task?.cancel()
  }
}

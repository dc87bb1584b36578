// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// The tasks that sleep on a clock, and those that wait for them to sleep.
final class Sleepers: Sendable {
  private struct Watcher {
    let count: Int
    let continuation: CheckedContinuation<Void, Never>
  }

  private struct State: ~Copyable {
    var count = 0
    /// How often a task has fallen asleep.
    var total = 0
    var watchers: [Watcher] = []
  }

  private let state = Locked(State())

  var total: Int { state.withLock { $0.total } }

  func add() -> Sleeper { Sleeper { [self] in change(by: 1) } }

  func remove(_ sleeper: Sleeper) {
    if sleeper.hasSlept { change(by: -1) }
  }

  func wait(for count: Int) async {
    await withCheckedContinuation { continuation in
      let isEnough = state.withLock { state in
        if state.count < count {
          state.watchers.append(Watcher(count: count, continuation: continuation))
        }
        return state.count >= count
      }
      if isEnough { continuation.resume() }
    }
  }

  private func change(by difference: Int) {
    let content = state.withLock { state in
      state.count += difference
      state.total += max(difference, 0)
      let content = state.watchers.filter { $0.count <= state.count }.map(\.continuation)
      state.watchers.removeAll { $0.count <= state.count }
      return content
    }
    for continuation in content { continuation.resume() }
  }
}

/// A sleeping task.
final class Sleeper: Sendable {
  private enum State: Sendable {
    case awake
    case asleep(CheckedContinuation<Void, any Error>)
    case ended(cancelled: Bool)
  }

  private let state = Locked((State.awake, hasSlept: false))
  private let onSleep: @Sendable () -> Void

  init(onSleep: @escaping @Sendable () -> Void) {
    self.onSleep = onSleep
  }

  var hasSlept: Bool { state.withLock { $0.hasSlept } }

  /// Suspends the task until it is woken.
  func sleep() async throws {
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let end = state.withLock { state -> Bool? in
          if case .ended(let isCancelled) = state.0 { return isCancelled }
          state = (.asleep(continuation), hasSlept: true)
          return nil
        }
        if let end { Self.resume(continuation, isCancelled: end) } else { onSleep() }
      }
    } onCancel: {
      self.end(isCancelled: true)
    }
  }

  func wake() { end(isCancelled: false) }

  private func end(isCancelled: Bool) {
    let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
      let former = state.0
      if case .ended = former { return nil }
      state.0 = .ended(cancelled: isCancelled)
      if case .asleep(let continuation) = former { return continuation }
      return nil
    }
    if let continuation { Self.resume(continuation, isCancelled: isCancelled) }
  }

  private static func resume(
    _ continuation: CheckedContinuation<Void, any Error>,
    isCancelled: Bool
  ) {
    if isCancelled {
      continuation.resume(throwing: CancellationError())
    } else {
      continuation.resume()
    }
  }
}

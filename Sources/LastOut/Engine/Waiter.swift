// Settle
// SPDX-License-Identifier: Apache-2.0

/// Waits until the runs of some keys have ended.
///
/// The engine's lock protects `keys`.
@usableFromInline
final class Waiter: Sendable {
  private struct State: ~Copyable {
    var hasEnded = false
    var continuation: CheckedContinuation<Void, Never>?
  }

  private let state = Monitor(State())

  /// Ends the wait, because nothing is left to wait for or it was given up.
  func end() {
    let continuation = state.withLock { state in
      state.hasEnded = true
      return state.continuation.take()
    }
    state.broadcast()
    continuation?.resume()
  }

  /// Blocks the thread; `false` if the deadline passed first.
  @usableFromInline
  func wait(until deadline: Moment?) -> Bool {
    state.wait { state in
      if state.hasEnded { return .done(true) }
      if let deadline, deadline <= MonotonicTime.now { return .done(false) }
      return .wait(until: deadline)
    }
  }

  /// Suspends the task until the end of the wait or its cancellation.
  func wait() async {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isLate = state.withLock { state in
          if !state.hasEnded { state.continuation = continuation }
          return state.hasEnded
        }
        if isLate { continuation.resume() }
      }
    } onCancel: {
      end()
    }
  }
}

/// The keys that a waiter waits for, and for each whether to wait for its pending value too.
@usableFromInline
struct WaiterKeys: Sendable {
  let waiter: Waiter
  var keys: [KeyIndex: Bool]
}

extension EngineState {
  /// Resumes the waiters for `key` when its last awaited run has ended or was dropped.
  @inlinable
  mutating func recordEnd(of key: KeyIndex, into work: inout Work) {
    if !waiters.isEmpty { endWaits(for: key, into: &work) }
  }

  @usableFromInline
  mutating func endWaits(for key: KeyIndex, into work: inout Work) {
    for place in waiters.indices.reversed() {
      guard let isFollowed = waiters[place].keys[key] else { continue }
      if isFollowed, core.isReady(key) {
        waiters[place].keys[key] = false
        continue
      }
      waiters[place].keys[key] = nil
      if waiters[place].keys.isEmpty { work.ended.append(waiters.remove(at: place).waiter) }
    }
  }

  /// Removes a waiter, and returns the names of the keys that it still waits for.
  @usableFromInline
  mutating func giveUp(_ waiter: Waiter) -> [Key] {
    guard let place = waiters.firstIndex(where: { $0.waiter === waiter }) else { return [] }
    return waiters.remove(at: place).keys.keys.map { names.key(of: $0) }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value behind a mutex with a condition to wait for its changes.
// The pointer never changes, and its memory is only accessed while the mutex is held.
@safe final class Monitor<State: ~Copyable>: @unchecked Sendable {
  private let mutex = RawMutex()
  private let condition = RawCondition()
  private let state: UnsafeMutablePointer<State>

  init(_ state: consuming sending State) {
    unsafe self.state = UnsafeMutablePointer<State>.allocate(capacity: 1)
    unsafe self.state.initialize(to: state)
  }

  deinit {
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
  }

  /// Calls `body` with exclusive access to the value.
  func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return unsafe body(&state.pointee)
  }

  /// Calls `step` until it has a result; in between it waits for a signal or the given time.
  ///
  /// Without a time it only waits for a signal.
  func wait<Result>(_ step: (inout State) -> WaitStep<Result>) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    while true {
      switch unsafe step(&state.pointee) {
      case .done(let result): return result
      case .wait(let deadline): mutex.wait(on: condition, until: deadline)
      }
    }
  }

  func signal() { condition.signal() }

  func broadcast() { condition.broadcast() }
}

/// The result of one step of a wait.
enum WaitStep<Result> {
  case done(Result)
  /// Call the step again after a signal, or at the given time.
  case wait(until: Moment?)
}

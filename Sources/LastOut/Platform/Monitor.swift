// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value behind a mutex whose changes threads can wait for.
// The pointer never changes, and what is behind it is only reached while the mutex is held.
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

  /// Calls `body` with the value while no other thread can reach it.
  func withLock<Result>(_ body: (inout State) -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return unsafe body(&state.pointee)
  }

  /// Calls `step` until it has a result; waits in between for a signal, or for the moment it names.
  ///
  /// Without a moment it waits for a signal alone.
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

/// What a thread does after it looked at a monitor's value.
enum WaitStep<Result> {
  case done(Result)
  /// Look again after a signal, or at the moment if there is one.
  case wait(until: Moment?)
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value behind a POSIX mutex.
///
/// Unlike `Synchronization.Mutex`, whose code is not instrumented on Linux, it is seen by the thread
/// sanitizer. An uncontended lock makes no system call.
// The pointer never changes, and what is behind it is only reached while the mutex is held.
@usableFromInline
@safe package final class Locked<State: ~Copyable>: @unchecked Sendable {
  @usableFromInline let mutex = RawMutex()
  @usableFromInline let state: UnsafeMutablePointer<State>

  @inlinable
  package init(_ state: consuming sending State) {
    unsafe self.state = UnsafeMutablePointer<State>.allocate(capacity: 1)
    unsafe self.state.initialize(to: state)
  }

  @inlinable
  deinit {
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
  }

  /// Calls `body` with the value while no other thread can reach it.
  @inlinable
  @inline(__always)
  package func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return unsafe body(&state.pointee)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A value behind a POSIX mutex.
///
/// Unlike `Synchronization.Mutex`, which is not instrumented on Linux, it is visible to the thread
/// sanitizer. An uncontended lock makes no system call.
// The pointer never changes, and its memory is only accessed while the mutex is held.
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

  /// Calls `body` with exclusive access to the value.
  @inlinable
  @inline(__always)
  package func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    mutex.lock()
    defer { mutex.unlock() }
    return unsafe body(&state.pointee)
  }
}

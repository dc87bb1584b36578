// Settle
// SPDX-License-Identifier: Apache-2.0

private import Glibc

/// A value behind a POSIX mutex.
///
/// Unlike `Synchronization.Mutex`, whose code is not instrumented on Linux, it is seen by the thread
/// sanitizer. An uncontended lock makes no system call.
// The pointers never change, POSIX lets any thread make these calls through the one, and what is
// behind the other is only reached while the lock is held.
@safe package final class Locked<State: ~Copyable>: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let state = UnsafeMutablePointer<State>.allocate(capacity: 1)

  package init(_ state: consuming sending State) {
    unsafe mutex.initialize(to: pthread_mutex_t())
    let failure = unsafe pthread_mutex_init(mutex, nil)
    precondition(failure == 0, "A lock could not be made: error \(failure).")
    unsafe self.state.initialize(to: state)
  }

  deinit {
    unsafe state.deinitialize(count: 1)
    unsafe state.deallocate()
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  /// Calls `body` with the value while no other thread can reach it.
  package func withLock<Result: Sendable>(_ body: (inout State) -> Result) -> Result {
    unsafe pthread_mutex_lock(mutex)
    defer { unsafe pthread_mutex_unlock(mutex) }
    return unsafe body(&state.pointee)
  }
}

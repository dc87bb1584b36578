// Settle
// SPDX-License-Identifier: Apache-2.0

#if canImport(Darwin)
  internal import Darwin
#elseif canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Android)
  internal import Android
#endif

/// A POSIX mutex with a condition that has deadlines on the monotonic clock.
// The pointers never change, and POSIX lets any thread make these calls through them.
@usableFromInline
@safe final class RawMutex: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)

  @usableFromInline
  init() {
    unsafe mutex.initialize(to: pthread_mutex_t())
    let failure = unsafe pthread_mutex_init(mutex, nil)
    precondition(failure == 0, "A lock cannot be created: error \(failure).")
  }

  deinit {
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  @usableFromInline
  func lock() { unsafe pthread_mutex_lock(mutex) }

  @usableFromInline
  func unlock() { unsafe pthread_mutex_unlock(mutex) }

  /// Unlocks the mutex until the condition is signalled or the deadline has passed.
  ///
  /// It may also return spuriously.
  func wait(on condition: RawCondition, until deadline: Moment?) {
    unsafe condition.wait(with: mutex, until: deadline)
  }
}

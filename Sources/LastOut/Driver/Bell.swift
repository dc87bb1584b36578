// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Lets one thread wait for a moment of `CLOCK_MONOTONIC`, or for another thread to ring.
///
/// A ring that nobody waits for is kept for the next wait.
// The pointers never change, and POSIX lets any thread make these calls through them.
@safe final class Bell: @unchecked Sendable {
  private let mutex = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
  /// Whether somebody rang since the last wait; protected by `mutex`.
  private var isRung = false

  init() {
    var attributes = pthread_condattr_t()
    unsafe pthread_condattr_init(&attributes)
    unsafe check(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC))
    unsafe mutex.initialize(to: pthread_mutex_t())
    unsafe check(pthread_mutex_init(mutex, nil))
    unsafe condition.initialize(to: pthread_cond_t())
    unsafe check(pthread_cond_init(condition, &attributes))
    unsafe pthread_condattr_destroy(&attributes)
  }

  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe condition.deallocate()
    unsafe pthread_mutex_destroy(mutex)
    unsafe mutex.deallocate()
  }

  static var now: Moment {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return Moment(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
  }

  func ring() {
    unsafe check(pthread_mutex_lock(mutex))
    isRung = true
    unsafe check(pthread_cond_signal(condition))
    unsafe check(pthread_mutex_unlock(mutex))
  }

  /// Returns at `deadline`, or when somebody rings; `nil` waits for a ring alone.
  func wait(until deadline: Moment?) {
    unsafe check(pthread_mutex_lock(mutex))
    if let deadline {
      var time = timespec(
        tv_sec: Int(clamping: deadline.nanoseconds / 1_000_000_000),
        tv_nsec: Int(deadline.nanoseconds % 1_000_000_000)
      )
      while !isRung, unsafe pthread_cond_timedwait(condition, mutex, &time) != ETIMEDOUT {}
    } else {
      while !isRung { unsafe check(pthread_cond_wait(condition, mutex)) }
    }
    isRung = false
    unsafe check(pthread_mutex_unlock(mutex))
  }

  /// The calls fail for invalid arguments only.
  private func check(_ result: Int32) {
    precondition(result == 0, "A thread primitive failed with error \(result).")
  }
}

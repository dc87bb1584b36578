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

/// A POSIX condition variable with deadlines on the monotonic clock.
// The pointer never changes, and POSIX lets any thread make these calls through it.
@safe final class RawCondition: @unchecked Sendable {
  private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)

  init() {
    unsafe condition.initialize(to: pthread_cond_t())
    #if canImport(Darwin)
      unsafe check(pthread_cond_init(condition, nil))
    #else
      var attributes = pthread_condattr_t()
      unsafe pthread_condattr_init(&attributes)
      unsafe check(pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC))
      unsafe check(pthread_cond_init(condition, &attributes))
      unsafe pthread_condattr_destroy(&attributes)
    #endif
  }

  deinit {
    unsafe pthread_cond_destroy(condition)
    unsafe condition.deallocate()
  }

  func signal() { unsafe check(pthread_cond_signal(condition)) }

  func broadcast() { unsafe check(pthread_cond_broadcast(condition)) }

  /// Waits with `mutex` released; the mutex is held again on return.
  @unsafe
  func wait(with mutex: UnsafeMutablePointer<pthread_mutex_t>, until deadline: Moment?) {
    guard let deadline else { return unsafe check(pthread_cond_wait(condition, mutex)) }
    #if canImport(Darwin)
      let now = MonotonicTime.now
      guard deadline > now else { return }
      var time = Self.time(deadline.nanoseconds - now.nanoseconds)
      let result = unsafe pthread_cond_timedwait_relative_np(condition, mutex, &time)
    #else
      var time = Self.time(deadline.nanoseconds)
      let result = unsafe pthread_cond_timedwait(condition, mutex, &time)
    #endif
    check(result == ETIMEDOUT ? 0 : result)
  }

  private static func time(_ nanoseconds: UInt64) -> timespec {
    timespec(
      tv_sec: time_t(clamping: nanoseconds / 1_000_000_000),
      tv_nsec: Int(nanoseconds % 1_000_000_000)
    )
  }

  /// The calls fail only for invalid arguments.
  private func check(_ result: Int32) {
    precondition(result == 0, "A thread primitive failed with error \(result).")
  }
}

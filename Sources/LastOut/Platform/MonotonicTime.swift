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

/// The default clock of the library.
///
/// It never jumps, and stops while the machine is suspended, like `SuspendingClock`.
@usableFromInline
enum MonotonicTime {
  @usableFromInline static var now: Moment {
    #if canImport(Darwin)
      return Moment(nanoseconds: clock_gettime_nsec_np(CLOCK_UPTIME_RAW))
    #else
      var time = timespec()
      unsafe clock_gettime(CLOCK_MONOTONIC, &time)
      return Moment(nanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec))
    #endif
  }
}

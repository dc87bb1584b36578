// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A point in time on the monotonic clock.
package struct Deadline: Sendable {
  /// The duration from its creation.
  package let duration: Duration
  private let nanoseconds: Int64

  package init(after duration: Duration) {
    self.duration = duration
    let (seconds, attoseconds) = duration.components
    nanoseconds = Self.now + seconds * 1_000_000_000 + attoseconds / 1_000_000_000
  }

  /// The remaining time for `poll`, rounded up to milliseconds; 0 once it has passed.
  package var remainingMilliseconds: Int32 {
    let left = nanoseconds - Self.now
    return left <= 0 ? 0 : Int32(clamping: (left + 999_999) / 1_000_000)
  }

  private static var now: Int64 {
    var time = timespec()
    guard unsafe clock_gettime(CLOCK_MONOTONIC, &time) == 0 else {
      preconditionFailure("The monotonic clock cannot be read.")
    }
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }
}

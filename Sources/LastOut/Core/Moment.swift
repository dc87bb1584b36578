// Settle
// SPDX-License-Identifier: Apache-2.0

/// A point in time on a monotonic clock, in nanoseconds since an arbitrary start.
///
/// The queue never reads a clock; its driver passes the time.
@usableFromInline
@frozen
package struct Moment: Comparable, Hashable, Sendable {
  /// Nanoseconds since the clock's start.
  @usableFromInline
  package var nanoseconds: UInt64

  /// The clock's start.
  @usableFromInline
  package static let zero = Moment(nanoseconds: 0)

  /// Creates a moment from nanoseconds since the clock's start.
  @inlinable
  package init(nanoseconds: UInt64) {
    self.nanoseconds = nanoseconds
  }

  /// The moment `duration` later; saturates at both ends.
  @inlinable
  package func advanced(by duration: Duration) -> Moment {
    let delta = duration.wholeNanoseconds
    if delta >= 0 {
      let (sum, overflow) = nanoseconds.addingReportingOverflow(UInt64(delta))
      return Moment(nanoseconds: overflow ? .max : sum)
    }
    let (difference, underflow) = nanoseconds.subtractingReportingOverflow(delta.magnitude)
    return Moment(nanoseconds: underflow ? 0 : difference)
  }

  /// The time from this moment to `other`.
  @inlinable
  package func duration(to other: Moment) -> Duration {
    other.nanoseconds >= nanoseconds
      ? .nanoseconds(Int64(clamping: other.nanoseconds - nanoseconds))
      : .zero - .nanoseconds(Int64(clamping: nanoseconds - other.nanoseconds))
  }

  /// Whether `left` is earlier than `right`.
  @inlinable
  package static func < (left: Moment, right: Moment) -> Bool {
    left.nanoseconds < right.nanoseconds
  }
}

extension Duration {
  /// The duration in nanoseconds, rounded toward zero and clamped to 64 bits.
  @inlinable
  package var wholeNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    if overflow { return seconds < 0 ? .min : .max }
    let (sum, carry) = product.addingReportingOverflow(attoseconds / 1_000_000_000)
    return carry ? (seconds < 0 ? .min : .max) : sum
  }
}

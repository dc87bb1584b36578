// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// A quantity that changes linearly from one value to another.
package struct Ramp: Hashable, Sendable {
  package let from: Double
  package let to: Double
  package let start: Moment
  package let duration: Duration

  package init(from: Double, to: Double, start: Moment, duration: Duration) {
    self.from = from
    self.to = to
    self.start = start
    self.duration = max(duration, .zero)
  }

  /// Creates a constant value.
  package init(resting value: Double, at now: Moment) {
    self.init(from: value, to: value, start: now, duration: .zero)
  }

  package var end: Moment { start.advanced(by: duration) }

  package func isMoving(at now: Moment) -> Bool { now < end && from != to }

  /// The value at `now`, constant before the start and after the end.
  package func value(at now: Moment) -> Double {
    guard now < end else { return to }
    guard now > start else { return from }
    return from + (to - from) * (start.duration(to: now) / duration)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The times of the changes that a user's gesture makes.
///
/// A reaching hand follows a minimum-jerk path: slow, fast in the middle (1.875 times the mean
/// speed), slow again. A slider therefore reports most of its changes in the middle of a drag.
package enum Gesture {
  /// One change of a value, in milliseconds after the gesture's start.
  package struct Point: Hashable, Sendable {
    package var at: Double
    package var value: Double

    package init(at: Double, value: Double) {
      self.at = at
      self.value = value
    }
  }

  /// Drags a slider from `start` to `end` over `steps` marks in `milliseconds`.
  ///
  /// Each mark is a change at the time when the hand crosses it.
  package static func drag(
    from start: Double,
    to end: Double,
    steps: Int,
    milliseconds: Double
  ) -> [Point] {
    (1...max(1, steps)).map { step in
      let part = Double(step) / Double(max(1, steps))
      return Point(at: milliseconds * time(atPath: part), value: start + (end - start) * part)
    }
  }

  /// The times of taps, in milliseconds; `pauses` are the times between them.
  package static func taps(pauses: [Double]) -> [Double] {
    pauses.reduce(into: [0]) { times, pause in
      times.append(times[times.count - 1] + pause)
    }
  }

  /// The fraction of the path at the fraction `time` of the duration, both 0 to 1.
  package static func path(atTime time: Double) -> Double {
    time * time * time * (10 + time * (6 * time - 15))
  }

  /// The inverse of ``path(atTime:)``, by bisection.
  package static func time(atPath part: Double) -> Double {
    guard part > 0 else { return 0 }
    guard part < 1 else { return 1 }
    var low = 0.0
    var high = 1.0
    for _ in 0..<40 {
      let middle = (low + high) / 2
      if path(atTime: middle) < part { low = middle } else { high = middle }
    }
    return (low + high) / 2
  }
}

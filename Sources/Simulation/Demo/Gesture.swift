// Settle
// SPDX-License-Identifier: Apache-2.0

/// A movement of a hand, made from a stated duration and stated pauses: when each change comes.
///
/// Hands that reach for a mark follow a minimum-jerk path: slow, fast in the middle (1.875 times the
/// mean speed), slow again. A slider therefore reports most of its changes in the middle of a drag.
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

  /// Drags a slider from `start` to `end` in `steps` marks; each mark is a change when the hand
  /// crosses it, the last one when the hand stops after `milliseconds`.
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

  /// Times of taps on a stepper: `pauses` are the milliseconds before each tap but the first.
  package static func taps(pauses: [Double]) -> [Double] {
    pauses.reduce(into: [0]) { times, pause in
      times.append(times[times.count - 1] + pause)
    }
  }

  /// The part of the path covered when the part `time` of the duration has passed, both 0 to 1.
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

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A conversion from the user's units to the device's units.
package enum Scale: Hashable, Sendable {
  /// Maps one interval to another linearly and rounds to `decimals`; either may be reversed.
  case linear(from: Interval, to: Interval, decimals: Int)
  /// Kelvin for the user, whole mired for the device.
  case mired

  /// Two different bounds, in either order.
  package struct Interval: Hashable, Sendable {
    package let first: Double
    package let last: Double

    package init(_ first: Double, _ last: Double) {
      self.first = first
      self.last = last
    }
  }

  /// The wire number before rounding.
  func exact(_ number: Double) -> Double {
    switch self {
    case .linear(let from, let to, _):
      to.first + (number - from.first) * (to.last - to.first) / (from.last - from.first)
    case .mired: number == 0 ? .greatestFiniteMagnitude : 1_000_000 / number
    }
  }

  /// The rounded wire number.
  func wire(_ number: Double) -> Double { rounded(exact(number), decimals: decimals) }

  /// The user's number for a wire number, rounded to the resolution of the wire.
  func number(fromWire wire: Double) -> Double? {
    switch self {
    case .linear(let from, let to, _):
      let slope = (from.last - from.first) / (to.last - to.first)
      let number = from.first + (wire - to.first) * slope
      var places = 0
      var unit = 1.0
      while unit > slope.magnitude * resolution, places < 9 {
        unit /= 10
        places += 1
      }
      return rounded(number, decimals: places)
    case .mired: return wire > 0 ? (1_000_000 / wire).rounded() : nil
    }
  }

  /// The smallest difference between two wire numbers.
  var resolution: Double {
    var unit = 1.0
    for _ in 0..<decimals { unit /= 10 }
    return unit
  }

  private var decimals: Int {
    switch self {
    case .linear(_, _, let decimals): decimals
    case .mired: 0
    }
  }

  private func rounded(_ number: Double, decimals: Int) -> Double {
    var power = 1.0
    for _ in 0..<decimals { power *= 10 }
    return (number * power).rounded(.toNearestOrAwayFromZero) / power
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A conversion of a property's numbers: to those of the device, or to those that people read.
package enum Scale: Hashable, Sendable {
  /// Maps one interval to another linearly and rounds to `decimals`; either may be reversed.
  case linear(from: Interval, to: Interval, decimals: Int)
  /// Kelvin to whole mired, and mired to whole kelvin.
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

  /// The converted number before rounding.
  package func exact(_ number: Double) -> Double {
    switch self {
    case .linear(let from, let to, _):
      to.first + (number - from.first) * (to.last - to.first) / (from.last - from.first)
    case .mired: number == 0 ? .greatestFiniteMagnitude : 1_000_000 / number
    }
  }

  /// The converted number.
  package func converted(_ number: Double) -> Double {
    rounded(exact(number), decimals: decimals)
  }

  /// How much a number changes where the converted one changes by 1; `nil` if that differs.
  package var slope: Double? {
    switch self {
    case .linear(let from, let to, _): (from.last - from.first) / (to.last - to.first)
    case .mired: nil
    }
  }

  /// The number that is converted to `result`, before rounding; `nil` if there is none.
  package func inverse(_ result: Double) -> Double? {
    switch self {
    case .linear(let from, let to, _):
      from.first + (result - to.first) * (from.last - from.first) / (to.last - to.first)
    case .mired: result > 0 ? 1_000_000 / result : nil
    }
  }

  /// The number for a converted one, rounded to the resolution of that.
  package func number(for result: Double) -> Double? {
    guard let number = inverse(result) else { return nil }
    guard let slope else { return number.rounded() }
    var places = 0
    var unit = 1.0
    while unit > slope.magnitude * resolution, places < 9 {
      unit /= 10
      places += 1
    }
    return rounded(number, decimals: places)
  }

  /// The smallest difference between two converted numbers.
  package var resolution: Double {
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

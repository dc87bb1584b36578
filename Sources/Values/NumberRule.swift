// Settle
// SPDX-License-Identifier: Apache-2.0

/// The range and step of a number, and how people read it.
package struct NumberRule: Hashable, Sendable {
  /// The allowed numbers; `nil` allows any finite number.
  package var range: ClosedRange<Double>?
  /// The distance between allowed values, counted from the lower bound, or from zero without a range.
  package var step: Double?
  package var unit: String?
  /// How people read and type it; `nil` where that is the number with ``unit``.
  package var display: Display?

  package init(range: ClosedRange<Double>? = nil, step: Double? = nil, unit: String? = nil) {
    self.range = range
    self.step = step
    self.unit = unit
  }

  /// The multiple of the step nearest to `number` within the range; ties round away from zero.
  ///
  /// `number` should be in the range. The result is an exact decimal where the step and the lower
  /// bound are: 20.7, never 20.700000000000003.
  package func snapped(_ number: Double) -> Double {
    guard let step, step > 0 else { return number }
    let origin = range?.lowerBound ?? 0
    let exact = (number - origin) / step
    guard exact.isFinite, exact.magnitude < 1e15 else { return number }
    if isOnGrid(number, exact, of: step, from: origin) { return number }
    var count = exact.rounded(.down)
    let fraction = exact - count
    // Decimal steps are not exact in binary, so a number this close to a tie is a tie.
    if (fraction - 0.5).magnitude < 1e-9 {
      let middle = origin + (count + 0.5) * step
      if middle >= 0 { count += 1 }
    } else if fraction > 0.5 {
      count += 1
    }
    if let range {
      let last = ((range.upperBound - origin) / step + 1e-9).rounded(.down)
      count = min(max(count, 0), last)
    }
    return Self.decimal(origin + count * step, likeSumOf: origin, step)
  }

  /// Whether a whole number in the range is a whole number of whole steps from a whole origin.
  ///
  /// This is the common case; it needs no rounding. `count` is the distance of `number` from
  /// `origin`, in steps.
  private func isOnGrid(
    _ number: Double,
    _ count: Double,
    of step: Double,
    from origin: Double
  ) -> Bool {
    guard Self.isExact(number), Self.isExact(count), Self.isExact(step), Self.isExact(origin)
    else { return false }
    return range?.contains(number) ?? true
  }

  /// Whether a number is whole and small enough that sums and products here are exact.
  private static func isExact(_ number: Double) -> Bool {
    number.magnitude < 1e15 && Double(Int64(number)) == number
  }

  /// The number within the range that is nearest to `number`.
  package func clamped(_ number: Double) -> Double {
    guard let range else { return number }
    return min(max(number, range.lowerBound), range.upperBound)
  }

  /// The range in words, such as `5 to 30 °C`.
  package var allowed: String {
    guard let range else { return "a finite number" }
    let lower = NumberText.shortest(range.lowerBound)
    let upper = NumberText.shortest(range.upperBound)
    return "\(lower) to \(upper)" + (unit.map { " \($0)" } ?? "")
  }

  /// Removes the binary rounding error of a sum whose terms have at most nine decimals.
  private static func decimal(
    _ sum: Double,
    likeSumOf origin: Double,
    _ step: Double
  ) -> Double {
    var power = 1.0
    for _ in 0..<10 {
      if isWhole(origin * power), isWhole(step * power) {
        let scaled = (sum * power).rounded()
        return scaled.magnitude < 1e15 ? scaled / power : sum
      }
      power *= 10
    }
    return sum
  }

  private static func isWhole(_ number: Double) -> Bool {
    let whole = number.rounded()
    guard whole != 0 else { return number == 0 }
    return (number - whole).magnitude <= 1e-9 * max(1, number.magnitude)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The range and step of a number, and how people read it.
package struct NumberRule: Hashable, Sendable {
  /// The allowed numbers; `nil` allows any finite number.
  package var range: ClosedRange<Double>?
  /// The distance between allowed values, counted from the lower bound, or from zero without a
  /// range.
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

/// Numbers as people read and type them.
extension NumberRule {
  /// The unit that people read.
  package var shownUnit: String? { display?.unit ?? unit }

  /// A number as people read it, with its unit.
  package func shown(_ number: Double) -> (number: Double, unit: String?) {
    guard let display, let shown = display.shown(number) else { return (number, unit) }
    return (shown, display.unit)
  }

  /// The range as people read it.
  package var shownRange: ClosedRange<Double>? {
    guard let range else { return nil }
    let (first, last) = (shown(range.lowerBound).number, shown(range.upperBound).number)
    return min(first, last)...max(first, last)
  }

  /// The range as people read it, in words, such as `0 to 100 %`.
  package var shownAllowed: String {
    NumberRule(range: shownRange, unit: shownUnit).allowed
  }

  /// The range in words for somebody who gave `number`, which is outside it.
  ///
  /// A number that was probably meant in the unit that people read gets the range in that unit, and
  /// how it is typed.
  package func allowed(besides number: Double, wholeOnly: Bool) -> String {
    guard let display, let shownRange, shownRange != range else { return allowed }
    let both = "\(allowed), which is \(shownAllowed)"
    guard shownRange.contains(number),
      let meant = try? self.number(fromShown: number, wholeOnly: wholeOnly)
    else { return display.scale == .mired ? both : allowed }
    let typed = "\(NumberText.shortest(number))\(display.unit)"
    return "\(both); type \(typed) for \(NumberText.shortest(snapped(meant)))"
      + (unit.map { " \($0)" } ?? "")
  }

  /// The number of the property for one that people read.
  ///
  /// - Throws: For a number outside the range.
  package func number(
    fromShown shown: Double,
    wholeOnly: Bool
  ) throws(ValidationError) -> Double {
    guard let display else { return shown }
    let found = "\(NumberText.shortest(shown)) \(display.unit)"
    if let shownRange, !shownRange.contains(shown) {
      throw .outOfRange(found: found, allowed: shownAllowed)
    }
    guard let number = display.scale.inverse(shown) else {
      throw .wrongType(found: found, expected: "a number above 0", suggestion: nil)
    }
    // A rounded end of the range is within it.
    return clamped(rounded(number, wholeOnly: wholeOnly))
  }

  /// The number of the property for a text with one of its units, such as `4000 K` or `21.5°C`;
  /// `nil` for any other text.
  ///
  /// - Throws: For a number outside the range.
  package func number(
    withUnit text: String,
    wholeOnly: Bool
  ) throws(ValidationError) -> Double? {
    if let display, let shown = Self.number(in: text, before: display.unit) {
      return try number(fromShown: shown, wholeOnly: wholeOnly)
    }
    return unit.flatMap { Self.number(in: text, before: $0) }
  }

  /// The number before a unit, in any letter case.
  private static func number(in text: String, before unit: String) -> Double? {
    let word = text.trimmed.lowercased()
    guard !unit.isEmpty, word.utf8.count <= 80, word.hasSuffix(unit.lowercased()) else {
      return nil
    }
    return NumberText.parse(word.dropLast(unit.lowercased().count).trimmed)
  }

  /// Without the binary rounding error of the product: 20.7, never 20.700000000000003.
  func rounded(_ number: Double, wholeOnly: Bool) -> Double {
    if wholeOnly { return number.rounded(.toNearestOrAwayFromZero) }
    guard number.magnitude < 1e9 else { return number }
    return (number * 1e6).rounded() / 1e6
  }
}

/// A part of a number's range, as people write it: `50%`, or `+10%` for a step.
///
/// Where people read a number in `%`, a percentage is that number.
package struct Percentage: Hashable, Sendable {
  package let number: Double
  /// Whether it was written with a sign.
  package let isSigned: Bool

  /// Reads a text; `nil` for anything that is no number before a percent sign.
  package init?(_ text: some StringProtocol) {
    let word = text.trimmed
    guard word.last == "%", let number = NumberText.parse(word.dropLast().trimmed) else {
      return nil
    }
    self.number = number
    isSigned = word.first == "-" || word.first == "+"
  }
}

extension NumberRule {
  private static let percent = "%"

  /// The number that stands at `percentage` of the range, not yet checked.
  ///
  /// - Throws: For a percentage with a sign, one beyond the range, or a number without a range.
  package func number(
    at percentage: Percentage,
    wholeOnly: Bool
  ) throws(ValidationError) -> Double {
    let text = "\(NumberText.shortest(percentage.number))%"
    guard !percentage.isSigned else {
      let step = (percentage.number < 0 ? "" : "+") + text
      throw .unsupported(
        "\(step) is a step: use step (settle step KEY \(step)), or write \(step.dropFirst())"
      )
    }
    guard shownUnit != Self.percent else {
      return try self.number(fromShown: percentage.number, wholeOnly: wholeOnly)
    }
    let range = try rangeOfPercentages()
    guard (0...100).contains(percentage.number) else {
      throw .outOfRange(found: text, allowed: "0% to 100%")
    }
    let number = range.lowerBound + (range.upperBound - range.lowerBound) * percentage.number / 100
    return rounded(number, wholeOnly: wholeOnly)
  }

  /// The amount that a step by `percent` of the range adds: whole steps, and at least one.
  ///
  /// - Throws: For a number without a range.
  package func amount(ofPercent percent: Double, wholeOnly: Bool) throws(ValidationError) -> Double
  {
    let amount: Double
    if shownUnit == Self.percent, let slope = display.map(\.scale.slope) ?? 1 {
      amount = percent * slope
    } else {
      let range = try rangeOfPercentages()
      amount = (range.upperBound - range.lowerBound) * percent / 100
    }
    guard let grid = step ?? (wholeOnly ? 1 : nil), grid > 0, amount != 0 else {
      return rounded(amount, wholeOnly: wholeOnly)
    }
    let count = max(1, (amount.magnitude / grid).rounded(.toNearestOrAwayFromZero))
    return rounded(amount < 0 ? -count * grid : count * grid, wholeOnly: wholeOnly)
  }

  private func rangeOfPercentages() throws(ValidationError) -> ClosedRange<Double> {
    guard let range else {
      throw .unsupported("a percentage is of a range, and the property has none; give a number")
    }
    return range
  }
}

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

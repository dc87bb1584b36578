// Settle
// SPDX-License-Identifier: Apache-2.0

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
  /// A number that was probably meant in the unit that people read gets the range in that unit, and how
  /// it is typed.
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

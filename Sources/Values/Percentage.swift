// Settle
// SPDX-License-Identifier: Apache-2.0

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

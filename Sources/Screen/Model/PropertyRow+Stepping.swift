// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import JSON
internal import LastOut
internal import Values

/// The values that key presses select.
extension PropertyRow {
  /// The amount that one press adds to a number: its step, or about a hundredth of its range.
  var stepAmount: Double {
    guard let rule = kind.numberRule else { return 0 }
    if let step = rule.step, step > 0 { return step }
    if case .integer = kind { return 1 }
    guard let range = rule.range else { return 1 }
    let span = range.upperBound - range.lowerBound
    var amount = 1.0
    while amount > 0.001, amount * 50 > span { amount /= 10 }
    return amount
  }

  /// The amount that `count` presses add to a number.
  ///
  /// Where people read another unit, a press moves what they read: by whole numbers on a linear
  /// scale, and up is where that number grows.
  func amount(ofSteps count: Int, from number: Double? = nil) -> Double {
    let plain = Double(count) * stepAmount
    guard let rule = kind.numberRule, let display = rule.display else { return plain }
    guard let slope = display.scale.slope else { return -plain }
    let unit = display.scale.resolution * Double(count)
    guard let number, let shown = display.shown(number),
      let end = display.scale.inverse(shown + unit)
    else { return unit * slope }
    let least = Double((slope < 0 ? -1 : 1) * count.signum()) * stepAmount
    return (end - number).magnitude < least.magnitude ? least : end - number
  }

  /// The value `count` steps away, within the range; `nil` for a type without steps.
  ///
  /// The words of a choice wrap around. A step up makes a boolean true, a step down makes it false.
  func value(from base: JSONValue, steps count: Int) -> JSONValue? {
    switch kind {
    case .number(let rule), .integer(let rule):
      guard let number = base.double else { return nil }
      let sum = rule.clamped(number + amount(ofSteps: count, from: number))
      // Without a step, snapping to a fine one removes the sum's rounding error.
      let grid = NumberRule(step: stepAmount / 1000)
      return JSONValue(shortest: rule.step == nil ? grid.snapped(sum) : rule.snapped(sum))
    case .boolean: return .boolean(count > 0)
    case .choice(let words):
      guard !words.isEmpty else { return nil }
      let index = base.string.flatMap { words.firstIndex(of: $0) } ?? (count > 0 ? -1 : 0)
      return .string(words[(index + count % words.count + words.count) % words.count])
    case .text, .color, .action: return nil
    }
  }

  /// The urgent value that stops the device or switches it off, otherwise the only urgent value.
  ///
  /// Urgent values include a cover's OPEN, which must not be sent when the user wants to stop it.
  var stopValue: JSONValue? {
    for word in ["stop", "halt", "off"] {
      let found = urgent.first { ValueFormat.text($0).lowercased() == word }
      if let found { return found }
    }
    return urgent.count == 1 ? urgent.first : .none
  }

  /// Parses typed text; `nil` with a message when it is not a number in the range.
  ///
  /// The gateway validates everything else.
  func value(typed text: String) -> (value: JSONValue?, mistake: String?) {
    guard let rule = kind.numberRule else { return (.string(text), nil) }
    let isBare = NumberText.parse(text) != nil
    // A bare number is of the unit that the screen shows.
    let written = isBare ? rule.display.map { "\(text) \($0.unit)" } : nil
    let hasUnit = ["%", rule.unit, rule.shownUnit].contains { unit in
      unit.map { text.lowercased().hasSuffix($0.lowercased()) } ?? false
    }
    if written != nil || hasUnit {
      do throws(ValidationError) {
        return (try kind.value(from: .string(written ?? text)).json, nil)
      } catch {
        return (nil, error.description)
      }
    }
    guard let number = NumberText.parse(text) else {
      let hint = NumberText.suggestion(for: text).map { "; did you mean \($0)?" } ?? ""
      return (nil, "\"\(Excerpt.of(text))\" is not a number\(hint)")
    }
    guard rule.range?.contains(number) ?? true else {
      return (nil, "\(NumberText.shortest(number)) is outside \(rule.allowed)")
    }
    if case .integer = kind, number != number.rounded() {
      return (nil, "\(NumberText.shortest(number)) is not a whole number")
    }
    return (JSONValue(shortest: rule.snapped(number)), nil)
  }
}

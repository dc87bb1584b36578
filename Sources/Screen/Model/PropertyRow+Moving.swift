// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
internal import JSON
internal import LastOut

/// The next value that a key press means.
extension PropertyRow {
  /// What one press adds to a number: its step, else about a hundredth of its range.
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

  /// The value `count` steps away, within the range; `nil` for what has no steps.
  ///
  /// Words go round; of a boolean, more is true and less is false.
  func value(from base: JSONValue, steps count: Int) -> JSONValue? {
    switch kind {
    case .number(let rule), .integer(let rule):
      guard let number = base.double else { return nil }
      let sum = rule.clamped(number + Double(count) * stepAmount)
      // Without a grid the sum has binary noise, which a fine grid takes away.
      let grid = NumberRule(step: stepAmount / 1000)
      return JSONValue(shortest: rule.step == nil ? grid.snapped(sum) : rule.snapped(sum))
    case .boolean: return .boolean(count > 0)
    case .choice(let words):
      guard !words.isEmpty else { return nil }
      let place = base.string.flatMap { words.firstIndex(of: $0) } ?? (count > 0 ? -1 : 0)
      return .string(words[(place + count % words.count + words.count) % words.count])
    case .text, .color, .action: return nil
    }
  }

  /// The urgent value that stops or switches off, else the only one that there is.
  ///
  /// A cover's OPEN is urgent, too, and nothing to send to whoever wants it to stop.
  var stopValue: JSONValue? {
    for word in ["stop", "halt", "off"] {
      let found = urgent.first { ValueFormat.text($0).lowercased() == word }
      if let found { return found }
    }
    return urgent.count == 1 ? urgent.first : .none
  }

  /// What is typed, as a value of this type; `nil` with a reason where it is none.
  ///
  /// Only what can be said here is refused here: the gateway has the last word.
  func value(typed text: String) -> (value: JSONValue?, mistake: String?) {
    guard let rule = kind.numberRule else { return (.string(text), nil) }
    guard let number = NumberText.parse(text) else {
      let hint = NumberText.suggestion(for: text).map { "; did you mean \($0)?" } ?? ""
      return (nil, "\"\(Excerpt.of(text))\" is no number\(hint)")
    }
    guard rule.range?.contains(number) ?? true else {
      return (nil, "\(NumberText.shortest(number)) is outside \(rule.allowed)")
    }
    return (JSONValue(shortest: rule.snapped(number)), nil)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// The type of a property, with its limits.
package enum ValueKind: Hashable, Sendable {
  case number(NumberRule)
  case integer(NumberRule)
  case boolean
  case choice([String])
  case text
  case color
  /// A momentary command such as STOP, with the words it accepts; an empty list accepts any word.
  case action([String])

  /// The name of the type in device files.
  package var name: String {
    switch self {
    case .number: "number"
    case .integer: "integer"
    case .boolean: "boolean"
    case .choice: "choice"
    case .text: "text"
    case .color: "color"
    case .action: "action"
    }
  }

  /// The range and step of a numeric type.
  package var numberRule: NumberRule? {
    switch self {
    case .number(let rule), .integer(let rule): rule
    case .boolean, .choice, .text, .color, .action: nil
    }
  }
}

extension ValueKind {
  /// Reads a value that a user gave: a JSON value, or a bare word as a string.
  ///
  /// Numbers are snapped to the step and never clamped. A text such as `50%` is that part of the
  /// range, and one such as `red` that color.
  ///
  /// - Throws: ``ValidationError`` when the input is not a value of this type.
  package func value(from input: JSONValue) throws(ValidationError) -> Value {
    switch self {
    case .number(let rule): try number(from: input, rule, wholeOnly: false)
    case .integer(let rule): try number(from: input, rule, wholeOnly: true)
    case .boolean: try boolean(from: input)
    case .choice(let words): try word(from: input, of: words)
    case .action(let words): try word(from: input, of: words)
    case .text: .text(try scalar(input, expected: "text"))
    case .color: try color(from: input)
    }
  }

  private func number(
    from input: JSONValue,
    _ rule: NumberRule,
    wholeOnly: Bool
  ) throws(ValidationError) -> Value {
    let expected = wholeOnly ? "a whole number" : "a number"
    let number: Double
    switch input {
    case .integer(let integer): number = Double(integer)
    case .number(let double): number = double
    case .string(let text):
      if let parsed = NumberText.parse(text.trimmed) {
        try refuseStep(text, isPlain: true)
        number = parsed
      } else if let percentage = Percentage(text) {
        number = try rule.number(at: percentage, wholeOnly: wholeOnly)
      } else if let written = try rule.number(withUnit: text, wholeOnly: wholeOnly) {
        try refuseStep(text, isPlain: false)
        number = written
      } else {
        throw .wrongType(
          found: Excerpt.of(input),
          expected: expected,
          suggestion: NumberText.suggestion(for: text)
        )
      }
    case .null, .boolean, .array, .object:
      throw .wrongType(found: Excerpt.of(input), expected: expected, suggestion: nil)
    }
    return try checked(number, rule, wholeOnly: wholeOnly)
  }

  /// Refuses a number with a plus sign, which means a step; a number below zero has its sign.
  private func refuseStep(_ text: String, isPlain: Bool) throws(ValidationError) {
    guard text.trimmed.first == "+" else { return }
    let step = Excerpt.of(String(text.trimmed))
    // A step has no unit.
    let command = isPlain ? " (settle step KEY \(step))" : ""
    throw .unsupported("\(step) is a step: use step\(command), or write \(step.dropFirst())")
  }

  /// Checks that a number is finite, in range and, if `wholeOnly`, whole; then snaps it to the
  /// step.
  package func checked(
    _ number: Double,
    _ rule: NumberRule,
    wholeOnly: Bool
  ) throws(ValidationError) -> Value {
    guard number.isFinite else {
      throw .wrongType(found: number.description, expected: "a finite number", suggestion: nil)
    }
    if wholeOnly, number != number.rounded() || number.magnitude > 9_007_199_254_740_992 {
      throw .wrongType(
        found: NumberText.shortest(number),
        expected: "a whole number",
        suggestion: nil
      )
    }
    if let range = rule.range, !range.contains(number) {
      throw .outOfRange(
        found: NumberText.shortest(number),
        allowed: rule.allowed(besides: number, wholeOnly: wholeOnly)
      )
    }
    return .number(rule.snapped(number))
  }

  private func boolean(from input: JSONValue) throws(ValidationError) -> Value {
    if let flag = Self.flag(input) { return .boolean(flag) }
    let suggestion = input.string.flatMap {
      Suggestion.nearest(to: $0, in: ["true", "false", "on", "off"])
    }
    throw .wrongType(
      found: Excerpt.of(input),
      expected: "true or false, on or off, 1 or 0",
      suggestion: suggestion
    )
  }

  private func word(from input: JSONValue, of words: [String]) throws(ValidationError) -> Value {
    let found = try scalar(input, expected: words.isEmpty ? "a word" : "one of the words")
    if words.isEmpty || words.contains(found) { return .text(found) }
    let trimmed = String(found.trimmed)
    if words.contains(trimmed) { return .text(trimmed) }
    throw .notAChoice(
      found: Excerpt.of(input),
      allowed: words,
      suggestion: Suggestion.nearest(to: trimmed, in: words)
    )
  }

  private func scalar(_ input: JSONValue, expected: String) throws(ValidationError) -> String {
    guard let text = input.scalarText else {
      throw .wrongType(found: Excerpt.of(input), expected: expected, suggestion: nil)
    }
    return text
  }

  private func color(from input: JSONValue) throws(ValidationError) -> Value {
    guard let text = input.string else {
      guard let color = Color(object: input) else {
        throw .wrongType(found: JSONWriter.text(input), expected: Color.forms, suggestion: nil)
      }
      return .color(color)
    }
    let trimmed = text.trimmed
    guard let color = Color(hex: trimmed) ?? Color(word: trimmed) else {
      let isMissingSign = Color(hex: "#\(trimmed)") != nil
      throw .wrongType(
        found: Excerpt.of(input),
        expected: Color.forms,
        suggestion: isMissingSign
          ? "#\(trimmed)" : Suggestion.nearest(to: String(trimmed.prefix(40)), in: Color.words)
      )
    }
    return .color(color)
  }

  /// Reads `true/false`, `on/off` or `1/0`, ignoring case.
  package static func flag(_ input: JSONValue) -> Bool? {
    switch input {
    case .boolean(let flag): return flag
    case .integer, .number:
      if input.double == 1 { return true }
      return input.double == 0 ? false : nil
    case .string(let text):
      let bytes = Array(text.trimmed.utf8)
      return flag(word: bytes.span)
    case .null, .array, .object: return nil
    }
  }

  /// Reads `true/false`, `on/off` or `1/0` from bytes without surrounding spaces.
  package static func flag(word bytes: Span<UInt8>) -> Bool? {
    func isWord(_ word: StaticString) -> Bool {
      guard bytes.count == word.utf8CodeUnitCount else { return false }
      var index = 0
      for byte in word.description.utf8 {
        if bytes[index] | 0x20 != byte { return false }
        index += 1
      }
      return true
    }
    if isWord("true") || isWord("on") { return true }
    if isWord("false") || isWord("off") { return false }
    guard bytes.count == 1 else { return nil }
    switch bytes[0] {
    case UInt8(ascii: "1"): return true
    case UInt8(ascii: "0"): return false
    default: return nil
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// A value of a property, in the user's units.
package enum Value: Hashable, Sendable {
  /// `number` and `integer` properties.
  case number(Double)
  case boolean(Bool)
  /// `choice`, `text` and `action` properties.
  case text(String)
  case color(Color)
}

extension Value {
  /// The value as JSON, as in events and state topics.
  ///
  /// Whole numbers have no fraction.
  package var json: JSONValue {
    switch self {
    case .number(let number): JSONValue(shortest: number)
    case .boolean(let flag): .boolean(flag)
    case .text(let text): .string(text)
    case .color(let color): color.json
    }
  }

  /// The value as a bare payload: `40`, `true`, `heat`, `#ff8800`.
  ///
  /// A color in coordinates or hue and saturation is its JSON object.
  package var bareText: String {
    var output: [UInt8] = []
    appendBare(to: &output)
    return String(decoding: output, as: UTF8.self)
  }

  /// Appends the bytes of ``bareText``.
  package func appendBare(to output: inout [UInt8]) { json.appendBare(to: &output) }
}

extension JSONValue {
  /// A number, as an integer when it is whole and exactly representable.
  package init(shortest number: Double) {
    self =
      number == number.rounded(.towardZero) && number.magnitude <= 0x1p53
      ? .integer(Int64(number)) : .number(number)
  }

  /// Appends a string without quotes, as in bare payloads, and anything else as JSON.
  package func appendBare(to output: inout [UInt8]) {
    if case .string(let text) = self {
      output.append(contentsOf: text.utf8)
    } else {
      JSONWriter.append(self, to: &output)
    }
  }

  /// The text of a scalar, without quotes; `nil` for `null`, arrays and objects.
  package var scalarText: String? {
    switch self {
    case .string(let text): text
    case .boolean, .integer, .number: JSONWriter.text(self)
    case .null, .array, .object: nil
    }
  }

  /// Whether two scalars mean the same to a device.
  ///
  /// `1`, `1.0` and `"1"` do, and so do `"ON"` and `"on"`.
  package func isSameScalar(as other: JSONValue) -> Bool {
    if self == other { return true }
    if let left = double, let right = other.double { return left == right }
    guard let left = scalarText, let right = other.scalarText else { return false }
    return left == right || left.lowercased() == right.lowercased()
  }
}

/// How far a step goes: by a number, or by a percentage of the property's range.
package enum StepAmount: Hashable, Sendable {
  case number(Double)
  case percent(Double)

  /// Reads `10%`, `+10%` or `-10%`; `nil` for anything else.
  package init?(percentage text: String) {
    guard let percentage = Percentage(text) else { return nil }
    self = .percent(percentage.number)
  }

  /// A number, or a text such as `"-10%"`.
  package var json: JSONValue {
    switch self {
    case .number(let number): .number(number)
    case .percent(let number):
      .string("\(number < 0 ? "" : "+")\(NumberText.shortest(number))%")
    }
  }

  /// The number to add to a property of this type.
  ///
  /// A percentage of a type that is no number is returned as it is: the step itself is refused.
  ///
  /// - Throws: ``ValidationError`` for a percentage where there is no range.
  package func number(for kind: ValueKind) throws(ValidationError) -> Double {
    switch (self, kind) {
    case (.number(let number), _): number
    case (.percent(let percent), .number(let rule)):
      try rule.amount(ofPercent: percent, wholeOnly: false)
    case (.percent(let percent), .integer(let rule)):
      try rule.amount(ofPercent: percent, wholeOnly: true)
    case (.percent(let percent), .boolean), (.percent(let percent), .choice),
      (.percent(let percent), .text), (.percent(let percent), .color),
      (.percent(let percent), .action):
      percent
    }
  }
}

extension StepAmount: ExpressibleByFloatLiteral, ExpressibleByIntegerLiteral {
  package init(floatLiteral value: Double) { self = .number(value) }
  package init(integerLiteral value: Int) { self = .number(Double(value)) }
}

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

  /// Whether values are texts, which keep what they look like: `12.30`, `true`.
  package var isText: Bool {
    switch self {
    case .choice, .text, .action: true
    case .number, .integer, .boolean, .color: false
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

  /// The number `input` as somebody wrote it, where that is a value of this type.
  ///
  /// So it is with `12.30` where a text is wanted; else it is `input`.
  package func asWritten(
    _ input: JSONValue,
    _ written: @autoclosure () -> JSONValue?
  ) -> JSONValue {
    switch self {
    case .text: return written() ?? input
    case .choice(let words), .action(let words):
      guard let written = written(), let text = written.string,
        words.isEmpty || words.contains(text)
      else { return input }
      return written
    case .number, .integer, .boolean, .color: return input
    }
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
      if let flag = flag(word: bytes.span) { return flag }
      // The digits of a JSON number, such as 1.0; a plus sign means a step.
      return text.trimmed.first == "+"
        ? nil : NumberText.parse(bytes.span).flatMap { flag(.number($0)) }
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

/// How people read and type the numbers of a property: `50 %` for 127 of 254, `4000 K` for 250
/// mired.
///
/// It never changes what a device receives, or the numbers that programs read and write.
package struct Display: Hashable, Sendable {
  package var unit: String
  /// From the property's numbers to those that people read.
  package var scale: Scale

  package init(unit: String, scale: Scale) {
    self.unit = unit
    self.scale = scale
  }

  /// The number that people read; `nil` for one that the scale cannot convert, such as 0 mired.
  package func shown(_ number: Double) -> Double? {
    let shown = scale.converted(number)
    guard shown.magnitude < 1e15 else { return nil }
    return shown == 0 ? 0 : shown  // Never -0.
  }
}

// MARK: - JSON

extension Display {
  package var json: JSONValue {
    let form: JSONValue =
      switch scale {
      case .mired: "mired"
      case .linear(let from, let to, let decimals):
        .object([
          "from": .array([from.first, from.last].map { JSONValue(shortest: $0) }),
          "to": .array([to.first, to.last].map { JSONValue(shortest: $0) }),
          "decimals": .integer(Int64(decimals)),
        ])
      }
    return .object(["unit": .string(unit), "scale": form])
  }

  /// Reads ``json``; `nil` for anything else.
  package init?(_ json: JSONValue?) {
    guard let json, let unit = json["unit"]?.string, let form = json["scale"] else { return nil }
    if form == "mired" {
      self.init(unit: unit, scale: .mired)
    } else {
      guard let from = Self.interval(form["from"]), let to = Self.interval(form["to"]),
        let decimals = form["decimals"]?.double, (0...9).contains(decimals)
      else { return nil }
      self.init(unit: unit, scale: .linear(from: from, to: to, decimals: Int(decimals)))
    }
  }

  private static func interval(_ json: JSONValue?) -> Scale.Interval? {
    guard case .array(let ends)? = json, ends.count == 2, let first = ends[0].double,
      let last = ends[1].double, first != last
    else { return nil }
    return Scale.Interval(first, last)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

extension Property {
  /// The value as the device expects it: scaled, rounded, mapped and encoded.
  package func wireValue(of value: Value) -> JSONValue {
    switch value {
    case .number(let number): wireValue(of: number)
    case .boolean(let flag): (flag ? wire.on : wire.off) ?? .boolean(flag)
    case .text(let text): wire.words[text] ?? .string(text)
    case .color(let color): color.wire(wire.encoding)
    }
  }

  private func wireValue(of number: Double) -> JSONValue {
    if let word = word(for: number) { return word }
    let converted = wire.scale?.converted(number) ?? number
    return wire.format.map { .string($0.text(converted)) } ?? JSONValue(shortest: converted)
  }

  /// The wire value that a number has in place of itself.
  private func word(for number: Double) -> JSONValue? {
    wire.words.isEmpty ? nil : wire.words[NumberText.shortest(number)]
  }

  /// The value that a device reports; `nil` when the report is not a value of this property.
  ///
  /// `wire` is the JSON at ``StateSource/value``, or a bare payload as a string. A report may be
  /// out of range or between two steps, because a device reports its actual state.
  package func value(fromWire wire: JSONValue) -> Value? {
    switch kind {
    case .number(let rule), .integer(let rule): number(fromWire: wire, rule).map { .number($0) }
    case .boolean: boolean(fromWire: wire).map { .boolean($0) }
    case .choice(let words): word(fromWire: wire, of: words).map { .text($0) }
    case .text: wire.scalarText.map { .text($0) }
    case .color: Color(wire: wire, encoding: self.wire.reportedEncoding).map { .color($0) }
    case .action: nil
    }
  }

  /// Whether a reported wire value equals `value` within the tolerance.
  ///
  /// The tolerance is that of ``confirm``, otherwise half a step, otherwise the rounding error.
  package func isShown(_ value: Value, by reported: JSONValue) -> Bool {
    switch value {
    case .number(let number):
      if let word = reportedWord(reported) { return NumberText.parse(word) == number }
      if let word = word(for: number) { return reported.isSameScalar(as: word) }
      guard let found = wireNumber(reported) else { return false }
      let expected = wire.scale?.converted(number) ?? number
      let slack = confirm?.tolerance ?? tolerance(around: number)
      return (found - expected).magnitude <= slack + 1e-9 * max(1, expected.magnitude)
    case .boolean(let flag): return boolean(fromWire: reported) == flag
    case .text(let text):
      if case .choice(let words) = kind { return word(fromWire: reported, of: words) == text }
      return reported.isSameScalar(as: wireValue(of: value))
    case .color(let color):
      let encoding = wire.reportedEncoding
      guard let found = Color(wire: reported, encoding: encoding) else { return false }
      // The device reports what it was sent, which may be coarser than what was asked for.
      let sent =
        encoding == wire.encoding
        ? color : Color(wire: wireValue(of: value), encoding: wire.encoding) ?? color
      return sent.isNear(found, as: encoding, tolerance: confirm?.tolerance)
    }
  }

  /// Whether two values have the same wire value.
  package func isSameOnWire(_ left: Value, _ right: Value) -> Bool {
    left == right || wireValue(of: left) == wireValue(of: right)
  }

  private func number(fromWire reported: JSONValue, _ rule: NumberRule) -> Double? {
    if let word = reportedWord(reported) { return NumberText.parse(word) }
    if !wire.words.isEmpty {
      let same = wire.words.filter { $0.value.isSameScalar(as: reported) }.keys
      if let number = same.compactMap({ NumberText.parse($0) }).min() { return number }
    }
    guard let number = wireNumber(reported), word(for: number) == nil else { return nil }
    guard let scale = wire.scale else { return number }
    guard let unscaled = scale.number(for: number), unscaled.isFinite else { return nil }
    // The wire may be coarser than the step: prefer the step that maps to exactly this number.
    let snapped = rule.snapped(unscaled)
    if (scale.exact(snapped) - number).magnitude <= tolerance(around: snapped) { return snapped }
    return unscaled
  }

  /// Whether a report says that the device does not know the property's value.
  package func isUnknown(_ reported: JSONValue) -> Bool {
    reported == .null || kind.numberRule != nil && reportedWord(reported) == WireRule.none
  }

  /// The word that stands for a report.
  private func reportedWord(_ reported: JSONValue) -> String? {
    guard !wire.reportedWords.isEmpty else { return nil }
    return wire.reportedWords.first { $0.value.contains { reported.isSameScalar(as: $0) } }?.key
  }

  private func boolean(fromWire reported: JSONValue) -> Bool? {
    if let on = wire.reportedOn, reported.isSame(asAnyOf: on) { return true }
    if let off = wire.reportedOff, reported.isSame(asAnyOf: off) { return false }
    if let on = wire.on, reported.isSameScalar(as: on) { return true }
    if let off = wire.off, reported.isSameScalar(as: off) { return false }
    if wire.reportedOn != nil || wire.reportedOff != nil {
      let reports = [(true, wire.reportedOn), (false, wire.reportedOff)].map { flag, wire in
        (meaning: flag, wires: wire.map { [$0] } ?? [])
      }
      if let flag = Self.bounded(reported, reports) { return flag }
      if wire.reportedOn == .null || wire.reportedOff == .null {
        return reported.scalarText == nil ? nil : wire.reportedOn == .null
      }
    }
    return ValueKind.flag(reported)
  }

  private func word(fromWire reported: JSONValue, of words: [String]) -> String? {
    guard let text = reported.scalarText else { return nil }
    return words.first {
      wire.reportedWords[$0]?.contains { reported.isSameScalar(as: $0) } ?? false
    }
      ?? words.first { wire.words[$0] == reported }
      ?? words.first { wire.words[$0]?.isSameScalar(as: reported) ?? ($0 == text) }
      ?? words.first { wire.words[$0] == nil && $0.lowercased() == text.lowercased() }
      ?? otherWord(fromWire: reported, of: words)
  }

  /// The word of a number above a bound, or of any other report.
  private func otherWord(fromWire reported: JSONValue, of words: [String]) -> String? {
    guard !wire.reportedWords.isEmpty else { return nil }
    return Self.bounded(reported, wire.reportedWords.map { ($0, $1) })
      ?? words.first { wire.reportedWords[$0] == [.null] }
  }

  /// What the highest bound means that a reported number is above, or has reached.
  private static func bounded<Meaning>(
    _ reported: JSONValue,
    _ reports: [(meaning: Meaning, wires: [JSONValue])]
  ) -> Meaning? {
    var highest: (bound: Double, meaning: Meaning)?
    for (meaning, wires) in reports {
      for wire in wires {
        guard case .object(let members) = wire, let member = members.first,
          let number = reported.wireNumber, let bound = member.value.double,
          number > bound || number == bound && member.name == "from",
          highest.map({ $0.bound < bound }) ?? true
        else { continue }
        highest = (bound, meaning)
      }
    }
    return highest?.meaning
  }

  /// Half a step around `number` in wire units, and at least the rounding error of the wire value.
  private func tolerance(around number: Double) -> Double {
    let step =
      switch kind {
      case .number(let rule): rule.step ?? 0
      case .integer(let rule): rule.step ?? 1
      case .boolean, .choice, .text, .color, .action: 0.0
      }
    guard let scale = wire.scale else { return step / 2 }
    let center = scale.exact(number)
    let reach = max(
      (scale.exact(number + step / 2) - center).magnitude,
      (scale.exact(number - step / 2) - center).magnitude
    )
    return max(reach, scale.resolution / 2)
  }

  private func wireNumber(_ reported: JSONValue) -> Double? {
    guard let format = wire.reportedFormat ?? wire.format, let text = reported.string else {
      return reported.wireNumber
    }
    return format.number(in: text)
  }
}

extension JSONValue {
  /// The number of a number or of a text.
  fileprivate var wireNumber: Double? {
    switch self {
    case .integer(let integer): Double(integer)
    case .number(let number): number.isFinite ? number : nil
    case .string(let text): NumberText.parse(text.trimmed)
    case .null, .boolean, .array, .object: nil
    }
  }
}

extension Color {
  /// Whether two colors are equal in `encoding` within the tolerance, by default its rounding
  /// error.
  func isNear(_ other: Color, as encoding: ColorEncoding, tolerance: Double?) -> Bool {
    switch encoding {
    case .xy:
      let slack = (tolerance ?? 0.001) + 1e-9
      return (xy.x - other.xy.x).magnitude <= slack && (xy.y - other.xy.y).magnitude <= slack
    case .hs, .commaHS:
      return isNearHue(other, slack: tolerance ?? 1)
    case .hsb, .homieHSV:
      let slack = (tolerance ?? 1) + 1e-9
      return isNearHue(other, slack: slack)
        && (hsb.brightness - other.hsb.brightness).magnitude <= slack
    case .rgb, .hex, .commaRGB, .homie, .channels:
      let (left, right) = (rgb, other.rgb)
      return zip([left.red, left.green, left.blue], [right.red, right.green, right.blue])
        .allSatisfy { abs(Double($0) - Double($1)) <= tolerance ?? 1 }
    }
  }

  private func isNearHue(_ other: Color, slack: Double) -> Bool {
    let (left, right) = (hsb, other.hsb)
    guard (left.saturation - right.saturation).magnitude <= slack + 1e-9 else { return false }
    // The hue of white is arbitrary.
    if left.saturation <= slack, right.saturation <= slack { return true }
    let turn = (left.hue - right.hue).magnitude
    return min(turn, 360 - turn) <= slack + 1e-9
  }
}

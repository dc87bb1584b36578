// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// The template of a command, evaluated for values of a property.
struct CommandTemplate {
  let template: Template
  /// The variables for a value.
  let variables: (TemplateValue) -> [String: TemplateValue]

  /// What is published for each value; `nil` if there is nothing for one of them.
  func payloads(_ values: [TemplateValue], isExact: Bool = false) -> [String]? {
    let texts = values.compactMap { template.rendered(variables($0), isExact: isExact) }
    return texts.count == values.count && !texts.contains("") ? texts : nil
  }
}

extension ImportedProperty {
  /// The payload of a command whose template is `template`; sets `scale`, `values`, `on` and `off`
  /// as it needs them, and returns `nil` if a device file cannot express it.
  mutating func payload(of template: CommandTemplate) -> JSONValue? {
    switch self["type"] {
    case "boolean", "choice", "action": wordPayload(template)
    case "number", "integer": numberPayload(template)
    case "text": textPayload(template)
    default: nil
    }
  }

  /// The words of a property, and what Home Assistant gives to a template for each.
  var words: [(word: String, wire: JSONValue)] {
    if self["type"] == "boolean" {
      return [("true", self["on"] ?? true), ("false", self["off"] ?? false)]
    }
    return self["values"]?.members?.map { ($0.name, $0.value) }
      ?? self["values"]?.elements?.compactMap { value in
        value.scalarText.map { ($0, value) }
      } ?? []
  }

  private mutating func wordPayload(_ template: CommandTemplate) -> JSONValue? {
    let words = words
    let inputs = words.map { TemplateValue.text(TemplateValue($0.wire).written) }
    guard !words.isEmpty, let payloads = template.payloads(inputs),
      let shape = PayloadShape(payloads), set(zip(words, shape.values).map { ($0.word, $1) })
    else { return nil }
    return shape.structure
  }

  /// Sets the wire values of words; returns whether they can be told apart where they must be.
  mutating func set(_ words: [(word: String, wire: JSONValue)]) -> Bool {
    guard self["type"] == "boolean" else {
      // A word is sent as it is where all are.
      let isPlain = words.allSatisfy { $0.wire == .string($0.word) }
      guard
        let values = ChoiceWords.field(
          words.map { ($0.word, isPlain ? $0.wire : $0.wire.tidied) }
        )
      else { return false }
      self["values"] = values
      return true
    }
    let (on, off) = (words[0].wire.tidied, words[1].wire.tidied)
    guard on.isWord, off.isWord, !on.isSameScalar(as: off) else { return false }
    self["on"] = on == true ? Optional.none : on
    self["off"] = off == false ? Optional.none : off
    return true
  }

  private mutating func textPayload(_ template: CommandTemplate) -> JSONValue? {
    let probes = ["abc", "Hallo Welt", "x-1", "5"]
    guard let payloads = template.payloads(probes.map { .text($0) }),
      let shape = PayloadShape(payloads), shape.values.map(\.string) == probes
    else { return nil }
    return shape.structure
  }

  // MARK: - Numbers

  /// Numbers that the property can have: all of them where they are few.
  var numberProbes: [Double] {
    guard let ends = self["range"]?.elements?.compactMap(\.double), ends.count == 2 else {
      let whole: [Double] = [-7, 0, 1, 2, 10, 50, 100, 255, 1000]
      return self["type"] == "integer" ? whole : whole + [0.5, 21.5]
    }
    let span = ends[1] - ends[0]
    let count = min(((span / (self["step"]?.double ?? span / 64)) + 1e-9).rounded(.down), 300)
    let step = self["step"]?.double.map { max($0, ($0 * (span / $0 / 300).rounded(.up))) }
    let grid = (0...Int(count)).map { ends[0] + Double($0) * (step ?? span / count) }
    return grid.filter { $0 < ends[1] }.map { $0.tidied } + [ends[1]]
  }

  private mutating func numberPayload(_ template: CommandTemplate) -> JSONValue? {
    let probes = numberProbes
    let inputs = probes.map { number in
      Int64(exactly: number).map { TemplateValue.integer($0) } ?? .number(number)
    }
    guard let payloads = template.payloads(inputs), let shape = PayloadShape(payloads) else {
      return nil
    }
    let exact = template.payloads(inputs, isExact: true).flatMap { PayloadShape($0) }?.values
    if let sent = Self.numbers(shape.values, nil) {
      guard setScale(probes, sent, exact: exact.flatMap { Self.numbers($0, nil) } ?? sent) else {
        return setNumbers(probes, shape) ? shape.structure : Optional.none
      }
      let isText = shape.structure.string == nil && shape.values[0].string != nil
      guard isText else { return shape.structure }
      return shape.structure.replacingTexts {
        $0 == PayloadTemplate.placeholder ? .string(PayloadTemplate.textPlaceholder) : nil
      }
    }
    let formats = NumberFormat.formats(of: shape.values.compactMap(\.string)).compactMap { format in
      Self.numbers(shape.values, format).map { (format: format, sent: $0) }
    }
    // The numbers as they are, rather than what a longer text leaves of them.
    let same = formats.filter { zip($0.sent, probes).allSatisfy { $0.isNear($1) } }
    for (format, sent) in same + formats {
      var property = self
      property["encode"] = .string(format.text)
      let exact = exact.flatMap { Self.numbers($0, format) } ?? sent
      guard property.setScale(probes, sent, exact: exact) else { continue }
      let gateway = property.gatewayProperty
      guard probes.map({ gateway.wireValue(of: .number($0)) }) == shape.values else { continue }
      self = property
      return shape.structure
    }
    return setNumbers(probes, shape) ? shape.structure : Optional.none
  }

  /// The numbers in texts of a format; `nil` if one has none.
  private static func numbers(_ values: [JSONValue], _ format: NumberFormat?) -> [Double]? {
    let numbers = values.compactMap { value -> Double? in
      guard let text = value.string else { return format == nil ? value.double : nil }
      return format == nil ? NumberText.parse(text) : format?.number(in: text)
    }
    return numbers.count == values.count ? numbers : nil
  }

  /// Sets the wire value of each number, if the property has few; returns whether it has.
  private mutating func setNumbers(_ numbers: [Double], _ shape: PayloadShape) -> Bool {
    let wires = shape.values.map(\.tidied)
    guard let step = self["step"]?.double, numbers.count <= Self.mostNumbers,
      zip(numbers, numbers.dropFirst()).allSatisfy({ ($1 - $0).isNear(step) }),
      wires.allSatisfy(\.isWord), Set(wires.compactMap(\.scalarText)).count == numbers.count
    else { return false }
    self["values"] = .object(
      zip(numbers, wires).map { JSONValue.Member(NumberText.shortest($0), $1) }
    )
    return true
  }

  private static let mostNumbers = 64

  /// Sets the scale that makes `sent` of `numbers`; returns whether there is one.
  ///
  /// `exact` are the numbers before a template rounds them.
  private mutating func setScale(_ numbers: [Double], _ sent: [Double], exact: [Double]) -> Bool {
    if zip(numbers, sent).allSatisfy({ $0.isNear($1) }) { return true }
    let (low, high) = (numbers[0], numbers[numbers.count - 1])
    guard let last = exact.last, low < high, last != exact[0], self["range"] != nil else {
      return false
    }
    let decimals = Double.decimals(of: sent)
    let unit = Double.unit(decimals)
    // A template that cuts off decimals rounds a number that is lower by half of the last one.
    for shift in [0, 0.499 * unit] {
      let ends = [exact[0] - shift, last - shift].map(\.tidied)
      let standard = (ends[1] - ends[0]).magnitude >= 10 ? 0 : 3
      for places in Set([standard, decimals]).sorted() {
        let scale = Scale.linear(
          from: .init(low, high),
          to: .init(ends[0], ends[1]),
          decimals: places
        )
        let isSame = zip(zip(numbers, sent), exact).allSatisfy { pair, exact in
          let converted = scale.converted(pair.0)
          // A tie, and a number that is whole but for its last bits, may be rounded to either side.
          let halves = exact / unit * 2
          let isClose = (halves - halves.rounded()).magnitude < 1e-6 && places == decimals
          return (converted - pair.1).magnitude <= 1e-9 * max(1, pair.1.magnitude)
            + (isClose ? unit : 0)
        }
        guard isSame else { continue }
        var members: [JSONValue.Member] = [
          .init("from", .array([low, high].map { JSONValue(shortest: $0) })),
          .init("to", .array(ends.map { JSONValue(shortest: $0) })),
        ]
        if places != standard {
          members.append(.init("decimals", .integer(Int64(places))))
        }
        self["scale"] = .object(members)
        return true
      }
    }
    let isMired = zip(numbers, sent).allSatisfy { number, sent in
      low > 0 && Scale.mired.converted(number).isNear(sent)
    }
    if isMired { self["scale"] = "mired" }
    return isMired
  }
}

extension NumberFormat {
  /// The formats that may have made all of these texts, those with the longest text in common first.
  fileprivate static func formats(of texts: [String]) -> [NumberFormat] {
    guard let first = texts.first, let least = texts.map(\.count).min(), least <= 200 else {
      return []
    }
    let start = texts.map { zip($0, first).prefix { $0 == $1 }.count }.min() ?? 0
    let end =
      texts.map { zip($0.reversed(), first.reversed()).prefix { $0 == $1 }.count }.min() ?? 0
    func isDigit(_ letter: Character) -> Bool {
      letter.isHexDigit || letter == "." || letter == "-"
    }
    // What is common to all may begin or end with digits of the number.
    let starts = start - first.prefix(start).suffix(8).reversed().prefix(while: isDigit).count
    let ends = end - first.suffix(end).prefix(8).prefix(while: isDigit).count
    var formats: [NumberFormat] = []
    for (start, end) in (starts...start).reversed().flatMap({ start in
      (ends...end).reversed().map { (start, $0) }
    }) where start + end < least {
      let width = least - start - end
      for style in ["g", "X", "x", ".1f", ".2f", "0\(width)g", "0\(width)X", "0\(width)x"] {
        let parts = [first.prefix(start), first.suffix(end)].map { $0.replaced("%", by: "%%") }
        guard let format = NumberFormat("\(parts[0])%\(style)\(parts[1])"),
          texts.allSatisfy({ text in format.number(in: text).map { format.text($0) } == text })
        else { continue }
        formats.append(format)
      }
    }
    return formats
  }
}

extension Double {
  /// The number without the rounding error of binary fractions.
  var tidied: Double {
    let tidy = (self * 1_000_000).rounded() / 1_000_000
    return tidy.isNear(self) ? tidy : self
  }

  /// Whether six decimals suffice.
  var isTidy: Bool { (self * 1_000_000).rounded() / 1_000_000 == self }

  func isNear(_ other: Double) -> Bool {
    (self - other).magnitude <= 1e-9 * Swift.max(1, other.magnitude)
  }

  /// The decimals with which all numbers can be written, at most 9.
  static func decimals(of numbers: [Double]) -> Int {
    (0..<9).first { places in
      numbers.allSatisfy { number in
        (number / unit(places)).rounded().isNear(number / unit(places))
      }
    } ?? 9
  }

  /// The value of the last of so many decimals.
  static func unit(_ decimals: Int) -> Double {
    var power = 1.0
    for _ in 0..<decimals { power *= 10 }
    return 1 / power
  }
}

/// What several payloads have in common, and the one scalar by which they differ.
struct PayloadShape {
  /// The common structure with `$value` in its place; `$value` alone for payloads that are no JSON.
  private(set) var structure: JSONValue = .string(PayloadTemplate.placeholder)
  /// What each payload has in its place.
  private(set) var values: [JSONValue] = []

  /// Compares payloads; `nil` if they differ in more than one scalar.
  ///
  /// Where several places have the same scalar, all of them become `$value`.
  init?(_ payloads: [String]) {
    guard Set(payloads).count > 1 else {
      values = payloads.map { .string($0) }
      return
    }
    let parsed = payloads.compactMap { Self.json($0) }
    guard parsed.count == payloads.count else {
      values = payloads.map { .string($0) }
      return
    }
    let merged = JSONValue.common(parsed) { parts in
      guard parts.allSatisfy({ $0.scalarText != nil }), values.isEmpty || values == parts else {
        return nil
      }
      values = parts
      return .string(PayloadTemplate.placeholder)
    }
    guard let merged, !values.isEmpty else { return nil }
    structure = merged
  }

  /// A payload that is a JSON object or array.
  static func json(_ text: String) -> JSONValue? {
    guard text.hasPrefix("{") || text.hasPrefix("[") else { return nil }
    return try? Announcement(topic: "", text: text).json()
  }
}

extension JSONValue {
  /// What payloads have in common, as a payload's structure; `nil` if they differ in more than
  /// `placeholder` has a placeholder for.
  static func common(
    _ parts: [JSONValue],
    _ placeholder: ([JSONValue]) -> JSONValue?
  ) -> JSONValue? {
    let first = parts[0]
    if parts.allSatisfy({ $0.isEquivalent(to: first) }) { return first.escaped }
    if let placeholder = placeholder(parts) { return placeholder }
    if let members = first.members {
      guard parts.allSatisfy({ $0.members?.map(\.name) == members.map(\.name) }) else { return nil }
      let merged = members.indices.compactMap { place in
        common(parts.compactMap { $0.members?[place].value }, placeholder).map {
          Member(members[place].name, $0)
        }
      }
      return merged.count == members.count ? .object(merged) : nil
    }
    guard let count = first.elements?.count, parts.allSatisfy({ $0.elements?.count == count })
    else { return nil }
    let merged = (0..<count).compactMap { place in
      common(parts.compactMap { $0.elements?[place] }, placeholder)
    }
    return merged.count == count ? .array(merged) : nil
  }

  /// The value as a constant in a payload, where `$` begins a placeholder.
  var escaped: JSONValue { replacingTexts { .string(PlaceholderText.escaped($0)) } }

  /// A text as the scalar that is written in the same way: `3` for `"3"`, but not for `"03"`.
  var tidied: JSONValue {
    guard let text = string else { return self }
    if text == "true" || text == "false" { return .boolean(text == "true") }
    guard let number = NumberText.parse(text), NumberText.shortest(number) == text else {
      return self
    }
    return JSONValue(shortest: number)
  }
}

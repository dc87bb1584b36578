// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Reads a property's type and the keys that depend on it.
struct KindReader {
  let problems: Problems
  /// The name of the type; of an unknown one, the name that it resembles.
  let typeName: String
  /// All layers of the property.
  private let section: Section
  /// The layers of the strongest layer's type.
  ///
  /// A profile's range, for example, does not apply to a device's property that is a choice.
  private let typed: Section

  init(section: Section, problems: Problems) {
    self.problems = problems
    self.section = section
    let types = section.layers.map { $0["type"]?.text }
    let strongest = types.compactMap(\.self).first ?? ""
    let same = types.prefix { $0 == nil || $0 == strongest }
    let names = KeyTable.policies.keys
    typeName =
      names.contains(strongest)
      ? strongest : Synonyms.nearest(to: strongest, in: names) ?? strongest
    typed = Section(layers: Array(section.layers[..<same.count]), .property, problems)
  }

  /// Reads the kind with its range, step or words, without those that have a mistake; `nil` for an
  /// unknown type.
  func kind() -> ValueKind? {
    let isKnown = section.choice("type", of: KeyTable.policies.keys) != nil
    guard KeyTable.policies.keys.contains(typeName) else { return nil }
    checkKeys()
    return switch typeName {
    case "number": .number(rule(wholeOnly: false))
    case "integer": .integer(rule(wholeOnly: true))
    case "boolean": .boolean
    case "choice": .choice(choices(areNeeded: isKnown))
    case "text": .text
    case "color": .color
    default: .action(words() ?? [])
    }
  }

  /// The words of a choice; none after a mistake.
  private func choices(areNeeded: Bool) -> [String] {
    guard let node = typed["values"] else {
      if areNeeded { section.missing("values", "a choice needs its words") }
      return []
    }
    let before = problems.count
    let words = words() ?? []
    if words.isEmpty, problems.count == before {
      problems.add(node.position, "values: a choice needs at least one word, such as [off, on]")
    }
    return words
  }

  /// Reads the conversion of values to wire values.
  func wire(for kind: ValueKind) -> WireRule {
    var rule = WireRule()
    // A key of another type is reported already.
    if typeName == "boolean" { (rule.on, rule.off) = (scalar("on"), scalar("off")) }
    if let on = rule.on, let off = rule.off, on.isSameScalar(as: off), let node = typed["off"] {
      problems.add(node.position, "'on' and 'off' are the same")
    }
    rule.scale = scale(kind)
    if typeName == "color", let encoding = encoding("encode") { rule.encoding = encoding }
    if typeName == "boolean" {
      let reported = typed.nested("decode", .decode)
      rule.reportedOn = reported.flatMap { scalars("on", in: $0) }
      rule.reportedOff = reported.flatMap { scalars("off", in: $0) }
      switch reported?.choice("else", of: ["on", "off"]) {
      case "on": rule.reportedOn = .null
      case "off": rule.reportedOff = .null
      default: break
      }
    } else if case .choice(let words) = kind {
      rule.reportedWords = reportedWords(of: words)
    } else if typeName == "color" {
      rule.decoding = encoding("decode")
    } else if kind.numberRule != nil {
      rule.format = format(typed["encode"], "encode")
      if typed["decode"]?.pairs == nil {
        rule.reportedFormat = format(typed["decode"], "decode")
      } else {
        rule.reportedFormat = format(typed["decode"]?["else"], "else")
        rule.reportedWords = reportedWords(of: [], isNumber: true)
      }
      rule.words = numbers()
      return rule
    }
    for pair in typed["values"]?.pairs ?? [] { rule.words[pair.key] = pair.value.scalarJSON }
    return rule
  }

  /// Reads the text that a number is in.
  private func format(_ node: YAMLNode?, _ key: String) -> NumberFormat? {
    guard let node else { return nil }
    return node.text.flatMap { NumberFormat($0) }
      ?? typed.reject(
        node,
        key,
        expected: "a text with %g, %d, %X, %x or %.1f in the place of the number, such as 'TT=%g'"
      )
  }

  /// Reads the wire values of single numbers, by their shortest form.
  private func numbers() -> [String: JSONValue] {
    guard let node = typed["values"], words() != nil else { return [:] }
    let pairs = node.pairs ?? []
    let numbers = pairs.compactMap { NumberText.parse($0.key) }
    guard !pairs.isEmpty, numbers.count == pairs.count else {
      problems.add(
        node.position,
        "values: expected numbers and the wire value of each, such as {0: off, 1: 16}"
      )
      return [:]
    }
    return Dictionary(
      zip(numbers.map { NumberText.shortest($0) }, pairs.compactMap(\.value.scalarJSON))
    ) { $1 }
  }

  private func encoding(_ key: String) -> ColorEncoding? {
    typed.choice(key, of: ColorEncoding.allCases.map(\.rawValue))
      .flatMap { ColorEncoding(rawValue: $0) }
  }

  /// The types that a key applies to.
  private static let owners: [(key: String, types: [String])] = [
    ("range", ["number", "integer"]), ("step", ["number", "integer"]),
    ("unit", ["number", "integer"]), ("scale", ["number", "integer"]),
    ("display", ["number", "integer"]),
    ("values", ["choice", "action", "number", "integer"]), ("on", ["boolean"]),
    ("off", ["boolean"]), ("encode", ["color", "number", "integer"]),
    ("decode", ["color", "boolean", "choice", "number", "integer"]),
  ]

  private static func listed(_ types: [String]) -> String {
    let last = types.suffix(2).joined(separator: " and ")
    return Section.list(types.dropLast(2) + [last])
  }

  private func checkKeys() {
    for (key, types) in Self.owners where !types.contains(typeName) {
      guard let node = typed[key] else { continue }
      problems.add(
        node.position,
        "'\(key)' is for \(Self.listed(types)); this property is of type \(typeName)"
      )
    }
  }

  private func rule(wholeOnly: Bool) -> NumberRule {
    var rule = NumberRule()
    rule.unit = typed.text("unit")
    if let node = typed["range"], let ends = interval(node, "range") {
      if ends.first > ends.last {
        let (low, high) = (NumberText.shortest(ends.last), NumberText.shortest(ends.first))
        problems.add(
          node.position,
          "range: the lower end must come first",
          suggestion: "[\(low), \(high)]"
        )
      } else if ends.first == ends.last {
        problems.add(node.position, "range: both ends are \(NumberText.shortest(ends.first))")
      } else {
        rule.range = ends.first...ends.last
      }
      if wholeOnly, ends.first != ends.first.rounded() || ends.last != ends.last.rounded() {
        problems.add(node.position, "range: an integer's range has whole ends")
      }
    }
    if let step = typed.number("step"), let node = typed["step"] {
      if step <= 0 {
        problems.add(node, "step", expected: "a number above 0")
      } else if wholeOnly, step != step.rounded() {
        problems.add(node, "step", expected: "a whole number, as the type is integer")
      } else if let range = rule.range, step > range.upperBound - range.lowerBound {
        problems.add(
          node.position,
          "step: \(NumberText.shortest(step)) is more than the whole range"
        )
      } else {
        rule.step = step
      }
    }
    rule.display = display(of: rule.range)
    return rule
  }

  private func words() -> [String]? {
    guard let node = typed["values"] else { return nil }
    guard let pairs = node.pairs else { return typed.words("values")?.map(\.text) }
    for pair in pairs where pair.value.scalarJSON == nil || pair.value.isNull {
      problems.add(
        pair.value.position,
        "values: found \(pair.value.kindDescription) for '\(Excerpt.of(pair.key))', "
          + "expected its wire value: a word, number, true or false"
      )
    }
    return pairs.map(\.key)
  }

  /// Reads what the device reports for the words of a choice: one word, number, true or false each,
  /// or a list.
  private func reportedWords(of words: [String], isNumber: Bool = false)
    -> [String: [JSONValue]]
  {
    guard let node = typed["decode"] else { return [:] }
    guard let pairs = node.pairs else {
      let example = "{heat: [manual, day]}"
      let expected = "the choice's words and what is reported for each, such as \(example)"
      problems.add(node, "decode", expected: expected)
      return [:]
    }
    var reports: [String: [JSONValue]] = [:]
    for pair in pairs {
      if pair.key == "else", !words.contains("else"), let word = pair.value.text,
        isNumber || words.contains(word)
      {
        if !isNumber { reports[word] = [.null] }
        continue
      }
      // Without words there is a mistake in them.
      let isKnown =
        isNumber
        ? pair.key == WireRule.none || NumberText.parse(pair.key) != nil
        : words.contains(pair.key) || words.isEmpty
      guard isKnown else {
        problems.add(
          pair.keyPosition,
          "decode: '\(Excerpt.of(pair.key))' is "
            + (isNumber ? "neither a number nor none nor else" : "none of the choice's words"),
          suggestion: Suggestion.nearest(to: pair.key, in: words)
        )
        continue
      }
      let nodes = pair.value.elements ?? [pair.value]
      let found = nodes.compactMap { (isNumber ? nil : Self.bound($0)) ?? $0.scalarJSON }
        .filter { $0 != .null }
      if found.count < max(nodes.count, 1) {
        problems.add(
          pair.value.position,
          "decode: expected for '\(Excerpt.of(pair.key))' a word, number, true or false, or a list of "
            + "them"
        )
      }
      reports[pair.key] = found
    }
    return reports
  }

  private func scalar(_ key: String, in section: Section? = nil) -> JSONValue? {
    let section = section ?? typed
    guard let node = section[key] else { return nil }
    guard let value = node.scalarJSON, value != .null else {
      return section.reject(node, key, expected: "a word, number, true or false")
    }
    return value
  }

  /// Reads a report: a word, number, true or false, a bound such as `{above: 0}`, or a list.
  private func scalars(_ key: String, in section: Section) -> JSONValue? {
    guard let node = section[key] else { return nil }
    if let bound = Self.bound(node) { return bound }
    guard let elements = node.elements else { return scalar(key, in: section) }
    let found = elements.compactMap(\.scalarJSON).filter { $0 != .null }
    guard !found.isEmpty, found.count == elements.count else {
      return section.reject(node, key, expected: "words, numbers, true or false")
    }
    return .array(found)
  }

  /// Reads `{above: NUMBER}`, or `{from: NUMBER}`, which includes it.
  private static func bound(_ node: YAMLNode) -> JSONValue? {
    guard let pairs = node.pairs, pairs.count == 1, ["above", "from"].contains(pairs[0].key),
      let number = pairs[0].value.scalarJSON, number.double != nil
    else { return nil }
    return .object([JSONValue.Member(pairs[0].key, number)])
  }

  private func scale(_ kind: ValueKind) -> Scale? {
    guard kind.numberRule != nil else { return nil }
    return scale(in: typed, of: kind.numberRule?.range, mired: "kelvin")
  }

  /// Reads `scale` of a section; `mired` is the unit that a scale to or from mired starts from.
  private func scale(
    in section: Section,
    of range: ClosedRange<Double>?,
    mired unit: String
  ) -> Scale? {
    guard let node = section["scale"] else { return nil }
    if let text = node.text {
      guard text == "mired" else {
        if text == "none" { return nil }
        return section.reject(
          node,
          "scale",
          expected: "mired, or a mapping with from and to",
          suggestion: Suggestion.nearest(to: text, in: ["mired"])
        )
      }
      guard let range, range.lowerBound > 0 else {
        // A range with a mistake is reported already.
        if range != nil || typed["range"] == nil {
          problems.add(node.position, "scale: mired needs a range in \(unit), above 0")
        }
        return nil
      }
      return .mired
    }
    guard let fields = section.nested("scale", .scale) else { return nil }
    for key in ["from", "to"] where fields[key] == nil {
      fields.missing(key, "a scale needs both ends, such as from: [0, 100], to: [0, 254]")
    }
    guard let from = fields["from"].flatMap({ interval($0, "from") }),
      let to = fields["to"].flatMap({ interval($0, "to") })
    else { return nil }
    guard from.first != from.last, to.first != to.last else {
      problems.add(fields.position, "scale: the ends of 'from', and of 'to', must differ")
      return nil
    }
    let decimals = fields.integer("decimals", in: 0...9)
    return .linear(
      from: from,
      to: to,
      decimals: decimals ?? ((to.last - to.first).magnitude >= 10 ? 0 : 3)
    )
  }

  /// How people read the numbers of a property.
  ///
  /// That of a profile is for the profile's numbers: it does not apply where the device states its
  /// own `unit` or `scale`, or its own `range` for a linear scale.
  private func display(of range: ClosedRange<Double>?) -> Display? {
    guard let node = typed["display"], node.text != "none" else { return nil }
    let own = typed.layers.prefix { $0["display"] == nil }
    func states(_ key: String) -> Bool { own.contains { $0[key] != nil } }
    // Not every range can be in mired.
    if states("range"), (range?.lowerBound ?? 0) <= 0 { return nil }
    guard let fields = typed.nested("display", .display) else { return nil }
    for key in ["unit", "scale"] where fields[key] == nil {
      let example = #"{unit: "%", scale: {from: [0, 254], to: [0, 100]}}"#
      fields.missing(key, "a display is such as \(example)")
    }
    guard let unit = fields.text("unit"),
      let scale = scale(in: fields, of: range, mired: "mired")
    else { return nil }
    let isLinear = if case .linear = scale { true } else { false }
    if states("unit") || states("scale") || isLinear && states("range") { return nil }
    return Display(unit: unit, scale: scale)
  }

  private func interval(_ node: YAMLNode, _ key: String) -> Scale.Interval? {
    guard let elements = node.elements, elements.count == 2 else {
      let found = node.elements.map { "a list of \($0.count)" } ?? node.kindDescription
      problems.add(
        node.position,
        "\(key): found \(found), expected two numbers such as [0, 100]"
      )
      return nil
    }
    let numbers = elements.compactMap { typed.number($0, key) }
    return numbers.count == 2 ? Scale.Interval(numbers[0], numbers[1]) : nil
  }
}

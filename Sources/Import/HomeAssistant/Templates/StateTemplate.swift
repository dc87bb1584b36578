// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// What the results of a state's template mean.
struct StateMeaning {
  /// The words of the property, and the result that means each.
  var words: [(word: String, text: String)]
  /// The property's number for a number that a template returns.
  var number: (Double) -> Double = { $0 }

  init(_ property: ImportedProperty) {
    let isFlag = property["type"] == "boolean"
    words = property.words.map { ($0.word, isFlag ? TemplateValue($0.wire).written : $0.word) }
  }

  /// The word that a result means.
  func word(_ result: String) -> String? {
    if let word = words.first(where: { $0.text == result }) { return word.word }
    // Python writes `True`, and JSON may have other spaces.
    let isFlag = ["true", "false"].contains(result.lowercased())
    return words.first { word in
      if isFlag { return word.text.lowercased() == result.lowercased() }
      return PayloadShape.json(result).map { PayloadShape.json(word.text) == $0 } ?? false
    }?.word
  }
}

extension ImportedProperty {
  /// The path of the value in reports that `report` reads; sets `scale`, `decode` or `values` as it
  /// needs them, and returns `nil` if a device file cannot express it.
  mutating func path(of report: ReportTemplate, _ meaning: StateMeaning) -> [JSONValue]? {
    guard case .value(let path) = report.place else { return nil }
    let isRead =
      switch self["type"] {
      case "boolean", "choice": readsWords(report, meaning)
      case "number", "integer": readsNumbers(report, meaning)
      case "text": readsText(report)
      default: false
      }
    return isRead ? path : nil
  }

  // MARK: - Words

  private mutating func readsWords(_ report: ReportTemplate, _ meaning: StateMeaning) -> Bool {
    let table = WordTable(
      report,
      own: [meaning.words, words.map { ($0.word, $0.wire.scalarText ?? "") }]
    ) {
      report.result(of: $0).flatMap { meaning.word($0) }
    }
    if table.isComplete, decodes(table, other: nil) { return true }
    if let other = table.other, decodes(table, other: other) { return true }
    return !table.bounds.isEmpty && decodes(table, other: table.lowest, bounds: table.bounds)
  }

  /// Sets `decode` for the known reports, and the word of any other one; returns whether the gateway
  /// then reads all of them.
  private mutating func decodes(
    _ table: WordTable,
    other: String?,
    bounds: [WordTable.Report] = []
  ) -> Bool {
    let isFlag = self["type"] == "boolean"
    func name(_ word: String) -> String { isFlag ? (word == "true" ? "on" : "off") : word }
    var property = self
    let otherwise = other.map { [JSONValue.Member("else", .string(name($0)))] } ?? []
    property["decode"] = otherwise.isEmpty ? Optional.none : .object(otherwise)
    var decoded: [JSONValue.Member] = []
    let words = self.words.map(\.word).filter { word in
      (table.known + bounds).contains { $0.word == word }
    }
    guard Set(words + [other].compactMap(\.self)).count > 1 || other == nil else { return false }
    for word in words where word != other {
      let reports =
        bounds.isEmpty ? table.known.filter { $0.word == word && !property.reads($0) } : bounds
      let wires = reports.filter { $0.word == word }.map(\.wire)
      if !wires.isEmpty {
        decoded.append(.init(name(word), wires.count == 1 ? wires[0] : .array(wires)))
      }
    }
    if !(decoded + otherwise).isEmpty { property["decode"] = .object(decoded + otherwise) }
    guard (table.known + table.strays).allSatisfy({ property.reads($0) }) else { return false }
    self = property
    return true
  }

  private func reads(_ report: WordTable.Report) -> Bool {
    gatewayProperty.value(fromWire: report.wire)?.json.scalarText == report.word
  }

  // MARK: - Texts

  private mutating func readsText(_ report: ReportTemplate) -> Bool {
    let probes =
      ["zzz", "Hallo Welt", "a,b-c:d_E", "12.30"]
      + report.facts.arguments.map { .string("a\($0)b") }
      + report.facts.compared.compactMap(\.json).filter { $0 != "" && $0.scalarText != nil }
    if report.isPlain || probes.allSatisfy({ report.result(of: $0) == TemplateValue($0).written }) {
      return true
    }
    guard isReadOnly else { return false }
    var table = WordTable(report, own: []) { wire in
      report.result(of: wire).flatMap { $0.isEmpty ? nil : $0 }
    }
    var words: [String] = []
    for known in table.known where !words.contains(known.word) { words.append(known.word) }
    if let other = table.other, !words.contains(other) { words.append(other) }
    // What an unknown report becomes may contain it.
    let isClosed = table.strays.allSatisfy { $0.word.has($0.wire.scalarText ?? "") }
    table.strays = []
    var choice = self
    choice["type"] = "choice"
    choice["values"] = .array(words.map { .string($0) })
    if isClosed, words.count > 1, report.result(of: "zzz") != "zzz",
      ChoiceWords.field(words.map { .string($0) }) != nil,
      choice.decodes(table, other: table.other)
    {
      self = choice
      return true
    }
    // A number without a unit.
    var number = self
    number["type"] = "number"
    guard report.result(of: "zzz") != "zzz", number.readsNumbers(report, StateMeaning(number))
    else { return false }
    self = number
    return true
  }

  // MARK: - Numbers

  private mutating func readsNumbers(_ report: ReportTemplate, _ meaning: StateMeaning) -> Bool {
    // The number may be in a text from which the template takes it, or in hexadecimal digits.
    for text in [nil, "%g", "%X"] {
      var property = self
      if property.readsNumbers(report, meaning, text.flatMap { NumberFormat($0) }) {
        self = property
        return true
      }
    }
    return false
  }

  private mutating func readsNumbers(
    _ report: ReportTemplate,
    _ meaning: StateMeaning,
    _ format: NumberFormat?
  ) -> Bool {
    func number(_ wire: JSONValue, isExact: Bool = false) -> Double? {
      report.result(of: wire, isExact: isExact).flatMap { NumberText.parse($0) }
        .map(meaning.number)
    }
    if let numbers = self["values"]?.members {
      return numbers.allSatisfy { number($0.value) == NumberText.parse($0.name) }
    }
    let isHexadecimal = format?.text == "%X"
    /// Reports of a number; a template may fail for those behind the first, but not err.
    func wires(_ number: Double) -> [JSONValue] {
      let plain = [JSONValue(shortest: number), .string(NumberText.shortest(number))]
      guard let format else { return plain }
      return [.string(format.text(number))] + (isHexadecimal ? [] : plain)
    }
    guard let low = number(wires(10)[0], isExact: true),
      let high = number(wires(110)[0], isExact: true), low != high
    else { return false }
    let factor = (high - low) / 100
    let offset = low - 10 * factor
    if isReadOnly, !factor.isNear(1) || !offset.isNear(0) {
      guard setReading(factor, offset) else { return false }
    }
    let standard = self["encode"] == nil ? Optional.none : "%g"
    let decode = (format?.text ?? standard).map { JSONValue.string($0) }
    self["decode"] = decode
    let gateway = gatewayProperty
    let range = self["range"]?.elements?.compactMap(\.double) ?? []
    let scale = gateway.wire.scale
    var slack = 1e-6
    if !isReadOnly, let scale {
      // What the command rounds is lost in the report too.
      slack += (scale.slope ?? 1).magnitude * scale.resolution
      slack += 0.002 * ((range.last ?? 0) - (range.first ?? 0))
    }
    let compared = report.facts.compared.compactMap(\.json).filter {
      $0.double != nil || $0.string != nil
    }
    let literals = compared.compactMap { $0.double ?? $0.string.flatMap { NumberText.parse($0) } }
    let probes: [Double] =
      [0, 1, 2, 7, 50, 99, 100, 120, 254, 255, 977, 65535, -1, -40, 0.5, 21.5]
      + literals.flatMap { [$0 - 1, $0, $0 + 1] }
    let results = probes.compactMap { probe in
      report.result(of: wires(probe)[0]).flatMap { NumberText.parse($0) }
    }
    let unit =
      Double.unit(Double.decimals(of: results))
      * (meaning.number(1) - meaning.number(0)).magnitude * (1 + 1e-6)
    /// Whether the gateway reads what the template makes of a number; `nil` if it makes nothing.
    func isRead(_ probe: Double, _ wire: JSONValue) -> Bool? {
      guard let found = number(wire), let exact = number(wire, isExact: true) else { return nil }
      let shown = scale?.inverse(probe) ?? probe
      return isBeyond(shown)
        || (exact - shown).magnitude <= slack * max(1, shown.magnitude)
          && (found - exact).magnitude <= unit
    }
    /// A report beyond the range may be cut off at its end.
    func isBeyond(_ shown: Double) -> Bool {
      range.count == 2 && (shown < range[0] || shown > range[1])
    }
    // What is reported in the place of a number, or where there is none.
    var others: [(word: String, wire: JSONValue)] = []
    let other = number("zzz")
    for wire in compared where !isHexadecimal {
      guard let probe = wire.double ?? wire.string.flatMap({ NumberText.parse($0) }),
        isRead(probe, wire) != true, !others.contains(where: { $0.wire == wire.tidied })
      else { continue }
      others.append((number(wire).map { NumberText.shortest($0) } ?? WireRule.none, wire.tidied))
    }
    for probe in probes where !others.contains(where: { $0.wire.double == probe }) {
      if isHexadecimal && probe != probe.rounded() || isBeyond(scale?.inverse(probe) ?? probe) {
        continue
      }
      let found = wires(probe).map { isRead(probe, $0) }
      guard found[0] != nil, !found.contains(false) else { return false }
    }
    /// Whether the gateway reads the same, if the template makes a number of a text.
    func isSame(_ wire: JSONValue) -> Bool {
      guard let found = number(wire), found != other else { return true }
      return gateway.value(fromWire: wire) == .number(found)
    }
    for wire in compared where wire.string.map({ NumberText.parse($0) == nil }) == true {
      if !isSame(wire), let found = number(wire) {
        others.append((NumberText.shortest(found), wire))
      }
    }
    for argument in Set(report.facts.arguments) where !argument.isEmpty {
      for text in ["50\(argument)", "50\(argument)x", "\(argument)50"] {
        guard isSame(.string(text)) else { return false }
      }
      // A list has several numbers; a text that is removed leaves one.
      let list = JSONValue.string("7\(argument)50")
      guard number(list) == 750 || isSame(list) else { return false }
    }
    guard !others.isEmpty else { return true }
    let words = Set(others.map(\.word)).sorted().map { word in
      let wires = others.filter { $0.word == word }.map(\.wire)
      return JSONValue.Member(word, wires.count == 1 ? wires[0] : .array(wires))
    }
    self["decode"] = .object(words + (decode.map { [.init("else", $0)] } ?? []))
    return others.count < 20
  }

  /// Sets the scale of a reading that is `reported * factor + offset`.
  private mutating func setReading(_ factor: Double, _ offset: Double) -> Bool {
    // A span of reports whose values can be written exactly.
    let spans = [100, 1 / factor.magnitude, 1000, 1_000_000]
    let span = spans.first { [$0, $0 * factor].allSatisfy { $0.tidied.isTidy } }
    guard let span = span?.tidied, factor.isFinite, offset.isFinite else { return false }
    self["scale"] = .object([
      "from": .array([offset, factor * span + offset].map { JSONValue(shortest: $0.tidied) }),
      "to": .array([0, JSONValue(shortest: span)]), "decimals": span == 100 ? 3 : 9,
    ])
    return true
  }

  /// The property as the gateway converts its values.
  var gatewayProperty: Property {
    let ends = self["range"]?.elements?.compactMap(\.double) ?? []
    let rule = NumberRule(
      range: ends.count == 2 && ends[0] <= ends[1] ? ends[0]...ends[1] : nil,
      step: self["step"]?.double
    )
    let kind: ValueKind =
      switch self["type"] {
      case "number": .number(rule)
      case "integer": .integer(rule)
      case "boolean": .boolean
      case "choice": .choice(words.map(\.word))
      case "color": .color
      default: .text
      }
    var property = Property(readOnly: id, kind: kind)
    (property.wire.on, property.wire.off) = (self["on"], self["off"])
    (property.wire.reportedOn, property.wire.reportedOff) = (
      self["decode"]?["on"], self["decode"]?["off"]
    )
    for member in self["values"]?.members ?? [] { property.wire.words[member.name] = member.value }
    for member in self["decode"]?.members ?? [] where kind != .boolean && member.name != "else" {
      property.wire.reportedWords[member.name] = member.value.elements ?? [member.value]
    }
    let format = self["decode"]?.string ?? self["decode"]?["else"]?.string
    switch self["decode"]?["else"]?.string {
    case _ where kind.numberRule != nil:
      property.wire.reportedFormat = format.flatMap { NumberFormat($0) }
    case "on"? where kind == .boolean: property.wire.reportedOn = .null
    case "off"? where kind == .boolean: property.wire.reportedOff = .null
    case let word?: property.wire.reportedWords[word] = [.null]
    case nil: break
    }
    property.wire.scale = self["scale"].flatMap { Scale(imported: $0) }
    property.wire.format = self["encode"]?.string.flatMap { NumberFormat($0) }
    property.wire.encoding = self["encode"]?.string.flatMap { ColorEncoding(rawValue: $0) } ?? .hex
    property.wire.decoding = self["decode"]?.string.flatMap { ColorEncoding(rawValue: $0) }
    return property
  }
}

extension Scale {
  /// The scale of a device file.
  fileprivate init?(imported field: JSONValue) {
    if field == "mired" {
      self = .mired
      return
    }
    let ends = ["from", "to"].flatMap { field.elements($0)?.compactMap(\.double) ?? [] }
    guard ends.count == 4 else { return nil }
    self = .linear(
      from: .init(ends[0], ends[1]),
      to: .init(ends[2], ends[3]),
      decimals: field["decimals"]?.double.map { Int($0) }
        ?? ((ends[3] - ends[2]).magnitude >= 10 ? 0 : 3)
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// What the template of a state makes of reports: the words of those that it knows.
struct WordTable {
  struct Report {
    var wire: JSONValue
    var word: String
  }

  /// The reports that the template names, and those in the property's own words.
  private(set) var known: [Report] = []
  /// Other reports that have a word, but not the one for any report.
  var strays: [Report] = []
  /// The word of any other report; `nil` if it has none, or if that depends on it.
  private(set) var other: String?
  /// The words of numbers from one bound to the next, and that below all bounds; empty if they do
  /// not depend on bounds.
  private(set) var bounds: [Report] = []
  private(set) var lowest: String?
  /// Whether every word of the property that a report can have is that of a known one.
  private(set) var isComplete = true

  /// Two reports of which each says the opposite of the other.
  private static let opposites: [(JSONValue, JSONValue)] = [
    (true, false), (1, 0), ("1", "0"), ("on", "off"), ("ON", "OFF"), ("true", "false"),
  ]

  /// Probes a template.
  ///
  /// `own` are vocabularies of the property: each of its words with a report that may mean it.
  init(
    _ report: ReportTemplate,
    own: [[(word: String, text: String)]],
    _ word: (JSONValue) -> String?
  ) {
    let compared = report.facts.compared.compactMap(\.json).filter { $0.scalarText != nil }
    let (anyText, anyNumber) = (word("zzz"), word(977))
    func add(_ wire: JSONValue, isNamed: Bool) {
      guard wire != "", let found = word(wire), isNamed || found != anyText && found != anyNumber,
        !known.contains(where: { $0.wire == wire })
      else { return }
      known.append(Report(wire: wire, word: found))
    }
    for wire in compared { add(wire, isNamed: true) }
    for index in 0..<Int64(report.facts.longestList) where word(.integer(index)) != "\(index)" {
      add(.integer(index), isNamed: false)
    }
    let arguments = Set(report.facts.arguments).filter { !$0.isEmpty }.sorted()
    let texts = Set(report.facts.texts).filter { !$0.isEmpty }.sorted()
    for vocabulary in own {
      // A template that names one of these words is about all of them.
      let isSpoken = known.contains { report in
        vocabulary.contains { $0.word == report.word && report.wire.scalarText == $0.text }
      }
      for (own, text) in vocabulary where word(.string(text)) == own {
        add(.string(text), isNamed: isSpoken)
      }
      // A text that the template changes, such as one with other spaces, or without the first word.
      for (_, text) in vocabulary {
        for part in texts where text.has(part) {
          for other in arguments + [""] {
            add(.string(text.replaced(part, by: other)), isNamed: false)
          }
        }
      }
    }
    let numbers = compared.compactMap { $0.double ?? $0.string.flatMap { NumberText.parse($0) } }
    // Only 0 is known of a level, such as that of a dimmer.
    let isLevel =
      anyNumber != nil && anyNumber == word(1) && anyNumber != word(0)
      && (!numbers.isEmpty || anyText != anyNumber)
    if !isLevel { addOpposites(word) }
    let longer: [String] = known.compactMap(\.wire.string).flatMap { text in
      arguments.flatMap { ["\(text)\($0)1", "1\($0)\(text)"] }
    }
    let near: [Double] = numbers.flatMap { [$0 - 1, $0 + 1] } + [0, 1, 5, 20, 50, 100, -31]
    for wire in near.map({ JSONValue(shortest: $0) })
      + longer.map({ .string($0) })
    {
      // Python's true and 1 are equal.
      let flag: JSONValue = wire == 1 ? true : wire == 0 ? false : wire
      guard let found = word(wire), found != anyText, found != anyNumber,
        !known.contains(where: {
          $0.wire.isSameScalar(as: wire) || $0.wire == flag && $0.word == found
        })
      else { continue }
      strays.append(Report(wire: wire, word: found))
    }
    other = numbers.isEmpty ? anyText ?? anyNumber : anyNumber
    if word(978) != anyNumber || word("yyy") != anyText { other = nil }
    findBounds(Set(numbers).sorted(), word)
    let words = Set(known.map(\.word))
    isComplete =
      words.count >= min(2, own.first?.count ?? 2)
      && [anyText, anyNumber].allSatisfy { $0.map { words.contains($0) } ?? true }
  }

  private mutating func findBounds(_ cuts: [Double], _ word: (JSONValue) -> String?) {
    func found(at number: Double) -> String? { word(JSONValue(shortest: number)) }
    guard let first = cuts.first, cuts.count < 20 else { return }
    lowest = found(at: first - 1)
    var left = lowest
    var bounds: [Report] = []
    for (place, cut) in cuts.enumerated() {
      let next = place + 1 < cuts.count ? cuts[place + 1] : cut + 1000
      let (at, right) = (found(at: cut), found(at: next - cut > 1 ? cut + 1 : (cut + next) / 2))
      // The word must be the same up to the next bound.
      guard found(at: (cut + next) / 2) == right, let right else { return }
      if at == right, at != left {
        bounds.append(Report(wire: .object(["from": JSONValue(shortest: cut)]), word: right))
      } else if at == left, right != left {
        bounds.append(Report(wire: .object(["above": JSONValue(shortest: cut)]), word: right))
      } else if at != right {
        return
      }
      left = right
    }
    if found(at: first - 500) == lowest { self.bounds = bounds }
  }

  private mutating func addOpposites(_ word: (JSONValue) -> String?) {
    // A template may only tell true from false, or have a word for these alone.
    let isTruth = known.isEmpty && word("zzz") == word(true) && word(977) == word(true)
    let isAlone = known.isEmpty && word("zzz") == nil && word(977) == nil
    for (on, off) in Self.opposites.flatMap({ [$0, ($0.1, $0.0)] }) {
      let isKnown = known.contains { $0.wire == on }
      guard isKnown || (isTruth || isAlone && known.isEmpty) && on == true,
        !known.contains(where: { $0.wire == off }), let meant = word(on), let other = word(off),
        meant != other
      else { continue }
      if !isKnown { known.append(Report(wire: on, word: meant)) }
      known.append(Report(wire: off, word: other))
    }
    // What Python takes for false beside false itself.
    if isTruth, let zero = word(0), known.contains(where: { $0.wire == false && $0.word == zero }) {
      known.append(Report(wire: 0, word: zero))
    }
  }
}

extension ReportTemplate {
  /// The fields of an availability whose words are what the template makes of reports; `nil` if that
  /// is not known.
  func presence(on: JSONValue, off: JSONValue) -> [JSONValue.Member]? {
    if isPlain { return [.init("online", on), .init("offline", off)] }
    let property = ImportedProperty("presence", type: "boolean", ["on": on, "off": off])
    let meaning = StateMeaning(property)
    let table = WordTable(self, own: [meaning.words]) {
      result(of: $0).flatMap { meaning.word($0) }
    }
    guard table.strays.isEmpty else { return nil }
    var fields: [JSONValue.Member] = []
    for (word, name) in [("true", "online"), ("false", "offline")] {
      let wires = table.known.filter { $0.word == word }.map(\.wire)
      if !table.isComplete, table.other == word {
        fields.append(.init("else", .string(name)))
      } else if !wires.isEmpty {
        fields.append(.init(name, wires.count == 1 ? wires[0] : .array(wires)))
      }
    }
    return fields.count == 2 ? fields : nil
  }
}

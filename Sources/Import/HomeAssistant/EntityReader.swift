// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// Builds the properties of one entity; what platforms have in common.
struct EntityReader {
  let entity: Entity
  private(set) var properties: [ImportedProperty] = []
  private(set) var remarks: [(kind: Remark.Kind, reason: String)] = []
  /// Whether the entity has one value only, so that its name is the property's.
  var isSingle = false

  var config: JSONValue { entity.config }

  init(_ entity: Entity) { self.entity = entity }

  mutating func note(_ reason: String, _ kind: Remark.Kind = .partly) {
    remarks.append((kind, reason))
  }

  // MARK: - Reading

  func text(_ key: String) -> String? { config[key]?.string }

  func number(_ key: String) -> Double? { config[key]?.double }

  /// A payload that the entity names, or the usual one; `nil` where it is switched off.
  func payload(_ key: String, else standard: JSONValue) -> JSONValue? {
    guard let value = config[key] else { return standard }
    return value.isWord ? value : Optional.none
  }

  /// A topic that can be published to.
  mutating func topic(_ key: String) -> String? {
    guard let topic = text(key), !topic.isEmpty else { return nil }
    if let problem = TopicName.problem(topic) {
      note("\(key): \(problem)", .refused)
      return nil
    }
    return DollarText.literal(topic)
  }

  // MARK: - Building

  /// Where a property's values go and come from; names of keys in the configuration.
  struct Road {
    var command = "command_topic"
    var commandTemplate: String? = "command_template"
    var state = "state_topic"
    var stateTemplate: String? = "value_template"
    /// What templates call the value.
    var variables: Set<String> = ["value"]

    init() {}

    /// `PREFIX_command_topic` and its like.
    init(_ prefix: String, stateTemplate suffix: String = "value_template") {
      command = "\(prefix)_command_topic"
      commandTemplate = "\(prefix)_command_template"
      state = "\(prefix)_state_topic"
      stateTemplate = "\(prefix)_\(suffix)"
    }
  }

  /// Adds a property that has its type, if its command can be sent.
  mutating func add(_ property: ImportedProperty, by road: Road) {
    guard let topic = topic(road.command) else { return }
    var property = property
    guard let payload = payload(of: &property, by: road) else { return }
    property.sends(to: topic, payload, qos: number("qos").map { Int64(max(0, min(2, $0))) })
    if property["type"] != "action" { addState(to: &property, by: road) }
    if let name = entity.name, isSingle, name != property.id { property["name"] = .string(name) }
    properties.append(property)
  }

  /// Adds a property whose command is a structure around the value.
  mutating func add(
    _ property: ImportedProperty,
    member name: String,
    command: String = "command_topic",
    state: String = "state_topic"
  ) {
    guard let topic = topic(command) else { return }
    var property = property
    property.sends(to: topic, .object([.init(name, .string(PayloadTemplate.placeholder))]))
    if let state = self.topic(state) {
      property.reports(on: state, at: DollarText.pointer([name]))
    }
    properties.append(property)
  }

  // MARK: - Changing what was added last

  /// Takes the last property's state away, and says why.
  mutating func dropState(_ reason: String) {
    guard let last = properties.indices.last, properties[last]["state"] != nil else { return }
    properties[last]["state"] = Optional.none
    properties[last]["confirm"] = Optional.none
    note(reason)
  }

  mutating func replaceState(ofPropertyAt place: Int, topic: String, pointer: String) {
    properties[place].reports(on: topic, at: pointer)
  }

  /// Gives the last property the time that moving takes.
  mutating func awaitMovement() {
    guard let last = properties.indices.last, properties[last]["state"] != nil else { return }
    properties[last]["confirm"] = .object(["within": "60s", "tolerance": 2])
  }

  /// A color and a color temperature replace each other.
  mutating func relateColors() {
    guard let color = properties.firstIndex(where: { $0.id == "color" }),
      let temperature = properties.firstIndex(where: { $0.id == "color_temp" })
    else { return }
    properties[color]["excludes"] = ["color_temp"]
    properties[temperature]["excludes"] = ["color"]
  }

  /// The payload that the command template makes; `nil`, said, where it is a program.
  private mutating func payload(of property: inout ImportedProperty, by road: Road) -> JSONValue? {
    let bare = JSONValue.string(PayloadTemplate.placeholder)
    guard let key = road.commandTemplate, let template = text(key) else { return bare }
    let isNumber = property["range"] != nil || property["type"] == "number"
    switch TemplateForm.making(template, of: road.variables) {
    case .linear(_, 1, 0): return bare
    case .linear(_, let factor, let offset):
      if isNumber, let scale = scale(of: property, factor, offset) {
        property["scale"] = scale
        return bare
      }
    case .lookedUp(_, let table):
      if let words = property["values"]?.elements?.compactMap(\.string) {
        let known = words.compactMap { word in
          table.first { $0.name == word }.map { (word: word, wire: $0.value) }
        }
        if known.count == words.count, let values = ChoiceWords.field(known) {
          property["values"] = values
          return bare
        }
      }
    case .structure(let structure, let isText):
      if isText != isNumber { return structure }
    case .number, .text, .table, nil: break
    }
    note(
      "\(property.id): its \(key) is a program: \(Excerpt.of(template, limit: 80))",
      .leftOut
    )
    return nil
  }

  private func scale(
    of property: ImportedProperty,
    _ factor: Double,
    _ offset: Double
  ) -> JSONValue? {
    guard let ends = property["range"]?.elements?.compactMap(\.double), ends.count == 2,
      factor != 0
    else { return nil }
    let wire = ends.map { JSONValue(shortest: Self.tidy(factor * $0 + offset)) }
    return .object([
      "from": .array(ends.map { JSONValue(shortest: $0) }), "to": .array(wire),
    ])
  }

  /// Without the noise of binary fractions.
  private static func tidy(_ number: Double) -> Double {
    (number * 1_000_000).rounded() / 1_000_000
  }

  private mutating func addState(to property: inout ImportedProperty, by road: Road) {
    guard let topic = topic(road.state) else { return }
    guard let key = road.stateTemplate, let template = text(key) else {
      if fits(property, factor: 1, offset: 0) { property.reports(on: topic) }
      return
    }
    switch TemplateForm.reading(template) {
    case .linear(let path, let factor, let offset)
    where fits(property, factor: factor, offset: offset):
      property.reports(on: topic, at: DollarText.pointer(path))
    case .lookedUp(let path, let table) where fits(property, table):
      property.reports(on: topic, at: DollarText.pointer(path))
    default:
      note(
        "\(property.id): without a state, as its \(key) is a program: "
          + Excerpt.of(template, limit: 80)
      )
    }
  }

  /// Whether the state's conversion is the command's, backwards.
  private func fits(_ property: ImportedProperty, factor: Double, offset: Double) -> Bool {
    guard let scale = property["scale"], let from = scale.elements("from")?.compactMap(\.double),
      let to = scale.elements("to")?.compactMap(\.double)
    else {
      let isMapped = property["values"]?.members != nil && property["type"] == "choice"
      return factor == 1 && offset == 0 && !isMapped
    }
    return zip(from, to).allSatisfy { here, there in
      (there * factor + offset - here).magnitude <= 0.02 * max(1, (from[1] - from[0]).magnitude)
    }
  }

  private func fits(_ property: ImportedProperty, _ table: [JSONValue.Member]) -> Bool {
    guard let words = property["values"]?.members else { return false }
    return words.allSatisfy { word in
      table.contains { entry in
        entry.value.scalarText == word.name && entry.name == word.value.scalarText
      }
    }
  }
}

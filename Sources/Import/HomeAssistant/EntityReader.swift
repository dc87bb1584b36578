// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Creates the properties of one entity.
struct EntityReader {
  let entity: Entity
  private(set) var properties: [ImportedProperty] = []
  private(set) var diagnostics: [(kind: ImportDiagnostic.Kind, reason: String)] = []
  /// Whether the entity has only one value, so that its name becomes the property's.
  var isSingle = false
  /// Whether properties that change together are sent in one message.
  var merges = false
  /// The options of its commands.
  var options: [String] = []
  /// The keys of topics that were read.
  private var usedTopics: Set<String> = []

  var config: JSONValue { entity.config }

  init(_ entity: Entity) { self.entity = entity }

  mutating func report(_ reason: String, _ kind: ImportDiagnostic.Kind = .partly) {
    diagnostics.append((kind, reason))
  }

  // MARK: - Reading

  func text(_ key: String) -> String? { config[key]?.string }

  /// The number under `key`, which some programs announce as text.
  func number(_ key: String) -> Double? {
    config[key].flatMap { $0.double ?? $0.string.flatMap { NumberText.parse($0) } }
  }

  /// The payload under `key`, or the default one; `nil` if it is switched off.
  func payload(_ key: String, else standard: JSONValue) -> JSONValue? {
    guard let value = config[key] else { return standard }
    return value.isWord ? value : Optional.none
  }

  /// The topic under `key`, with `$` escaped; reports an invalid one.
  mutating func topic(_ key: String) -> String? {
    usedTopics.insert(key)
    guard let topic = text(key), !topic.isEmpty else { return nil }
    if !key.has("command"), topic.contains("+") || topic.contains("#") {
      report(
        "\(key): '\(Excerpt.of(topic))' has wildcards; a device file names one topic",
        config["command_topic"] == nil ? .leftOut : .partly
      )
      return nil
    }
    if let problem = TopicName.problem(topic) {
      report("\(key): \(problem)", .refused)
      return nil
    }
    return PlaceholderText.escaped(topic)
  }

  /// The topics of the entity that no property has; those that never have a value of their own are
  /// left out.
  var unusedTopics: [String] {
    let silent: Set = ["availability_topic", "json_attributes_topic"]
    return (config.members ?? []).filter { member in
      let isTopic = member.name.hasSuffix("_topic") || member.name.hasSuffix("_t")
      return isTopic && member.value.string?.isEmpty == false && !usedTopics.contains(member.name)
        && !silent.contains(member.name)
    }.map(\.name).sorted()
  }

  /// Does not count these topics as unused.
  mutating func skipTopics(_ keys: [String]) { usedTopics.formUnion(keys) }

  // MARK: - Building

  /// Adds a property whose command is known, and whose state is at `path` in the reports.
  mutating func add(
    _ property: ImportedProperty,
    payload: JSONValue,
    command: String = "command_topic",
    state: String = "state_topic",
    at path: [String]?
  ) {
    guard let topic = topic(command) else { return }
    var property = property
    property.setCommand(to: topic, payload, qos: qos)
    if let path, let state = self.topic(state) {
      property.setState(on: state, at: PlaceholderText.pointer(path))
    }
    properties.append(property)
  }

  private var qos: Int64? { number("qos").map { Int64(max(0, min(2, $0))) } }

  /// Adds a property with its topics, unless its command cannot be expressed.
  mutating func add(_ property: ImportedProperty, by keys: TopicKeys) {
    guard let topic = topic(keys.command) else { return }
    var property = property
    guard let payload = payload(of: &property, by: keys) else { return }
    property.setCommand(to: topic, payload, qos: qos)
    if property["type"] != "action" { addState(to: &property, by: keys) }
    if let name = entity.name, isSingle, name != property.id { property["name"] = .string(name) }
    properties.append(property)
  }

  /// Adds a property whose command is a JSON object with the value as a member, besides `members`.
  mutating func add(
    _ property: ImportedProperty,
    member name: String,
    besides members: [JSONValue.Member] = [],
    command: String = "command_topic",
    state: String = "state_topic"
  ) {
    guard let topic = topic(command) else { return }
    var property = property
    let member = JSONValue.Member(name, .string(PayloadTemplate.placeholder))
    property.setCommand(to: topic, .object(members + [member]))
    if let state = self.topic(state) {
      property.setState(on: state, at: PlaceholderText.pointer([name]))
    }
    properties.append(property)
  }

  /// Adds a read-only property, unless the template of its state cannot be expressed.
  mutating func add(
    reading property: ImportedProperty,
    _ state: String = "state_topic",
    template: String = "value_template"
  ) {
    guard let topic = topic(state) else { return }
    var property = property
    var path: [String] = []
    if let template = text(template) {
      guard let found = property.path(ofReading: TemplateForm.reading(template)) else {
        return report(
          "\(property.id): its value_template cannot be translated: "
            + Excerpt.of(template, limit: 80),
          .leftOut
        )
      }
      path = found
    }
    property.setState(on: topic, at: PlaceholderText.pointer(path))
    if let name = entity.name, isSingle, name != property.id { property["name"] = .string(name) }
    properties.append(property)
  }

  // MARK: - Changing the last property

  /// Sets the words in which the last property's state is reported, if they are not those of its
  /// commands.
  mutating func decodeLast(onKey: String, offKey: String) {
    guard let property = properties.last else { return }
    let (on, off) = (property["on"] ?? true, property["off"] ?? false)
    let (reportedOn, reportedOff) = (payload(onKey, else: on), payload(offKey, else: off))
    guard let reportedOn, let reportedOff,
      !reportedOn.isSameScalar(as: on) || !reportedOff.isSameScalar(as: off)
    else { return }
    decodeLast(on: reportedOn, off: reportedOff)
  }

  /// Sets the words in which the last property's state is reported.
  mutating func decodeLast(on: JSONValue, off: JSONValue) {
    guard let last = properties.indices.last, properties[last]["state"] != nil else { return }
    properties[last]["decode"] = .object(["on": on, "off": off])
  }

  mutating func replaceState(ofPropertyAt index: Int, topic: String, pointer: String) {
    properties[index].setState(on: topic, at: pointer)
  }

  /// Extends the last property's confirmation to the time of a movement.
  mutating func allowMovementTime() {
    guard let last = properties.indices.last, properties[last]["state"] != nil else { return }
    properties[last]["confirm"] = .object(["within": "60s", "tolerance": 2])
  }

  /// Makes color and color temperature exclude each other.
  mutating func relateColors() {
    guard let color = properties.firstIndex(where: { $0.id == "color" }),
      let temperature = properties.firstIndex(where: { $0.id == "color_temp" })
    else { return }
    properties[color]["excludes"] = ["color_temp"]
    properties[temperature]["excludes"] = ["color"]
  }

  /// Makes every other property turn on `power`, as its commands do.
  ///
  /// Where a payload has the word for on in the place of `power`, the command carries it.
  mutating func implyPower() {
    guard let power = properties.first(where: { $0.id == "power" }) else { return }
    let payload = power["command"]?["payload"] ?? .null
    for index in properties.indices where properties[index].id != power.id {
      properties[index]["implies"] = .object(["power": true])
      guard let own = properties[index]["command"], let members = own.members else { continue }
      properties[index]["command"] = .object(
        members.map { member in
          guard member.name == "payload" else { return member }
          let carried = member.value.carrying(power["on"] ?? true, inPlaceOf: payload)
          return JSONValue.Member("payload", carried)
        }
      )
    }
  }

  /// The payload of the command template; reports a template that cannot be translated.
  private mutating func payload(of property: inout ImportedProperty, by keys: TopicKeys)
    -> JSONValue?
  {
    guard let key = keys.commandTemplate, let template = text(key) else {
      return .string(PayloadTemplate.placeholder)
    }
    let form = TemplateForm.making(template, of: keys.variables)
    if let payload = property.payload(of: form) { return payload }
    report(
      "\(property.id): its \(key) cannot be translated: \(Excerpt.of(template, limit: 80))",
      .leftOut
    )
    return nil
  }

  private mutating func addState(to property: inout ImportedProperty, by keys: TopicKeys) {
    guard let topic = topic(keys.state) else { return }
    guard let key = keys.stateTemplate, let template = text(key) else {
      if property.inverts(factor: 1, offset: 0) {
        property.setState(on: topic)
      } else {
        report(
          "\(property.id): without a state; a template converts its commands, but not its reports"
        )
      }
      return
    }
    if let path = property.path(of: TemplateForm.reading(template)) {
      property.setState(on: topic, at: PlaceholderText.pointer(path))
    } else {
      report(
        "\(property.id): without a state, as its \(key) cannot be translated: "
          + Excerpt.of(template, limit: 80)
      )
    }
  }
}

extension JSONValue {
  /// The payload with the placeholder of the implied power where it has `on`, and the payload
  /// `power` has the value.
  fileprivate func carrying(_ on: JSONValue, inPlaceOf power: JSONValue) -> JSONValue {
    if let members {
      return .object(
        members.map { member in
          guard let other = power[member.name] else { return member }
          return Member(member.name, member.value.carrying(on, inPlaceOf: other))
        }
      )
    }
    let isCarried = power == .string(PayloadTemplate.placeholder) && self == on
    return isCarried ? .string(PayloadTemplate.implied("power")) : self
  }
}

/// The property types that platforms consist of.
extension EntityReader {
  /// Creates a boolean with the entity's payloads for on and off.
  mutating func boolean(
    _ id: String,
    on: String = "payload_on",
    off: String = "payload_off",
    standard: (on: JSONValue, off: JSONValue) = ("ON", "OFF")
  ) -> ImportedProperty? {
    guard let on = payload(on, else: standard.on), let off = payload(off, else: standard.off),
      !on.isSameScalar(as: off)
    else {
      report("\(id): its payloads for on and off are not two different words", .leftOut)
      return nil
    }
    var property = ImportedProperty(id, type: "boolean")
    if on != true { property["on"] = on }
    if off != false { property["off"] = off }
    return property
  }

  /// Creates a number with bounds and step from the given keys.
  mutating func number(
    _ id: String,
    low: (key: String, standard: Double),
    high: (key: String, standard: Double),
    step: (key: String, standard: Double)?,
    unit: String?
  ) -> ImportedProperty? {
    var range = NumberRange()
    range.low = number(low.key) ?? low.standard
    range.high = number(high.key) ?? high.standard
    range.step = step.map { number($0.key) ?? $0.standard }
    range.unit = unit
    var notes: [String] = []
    switch range.property(id, report: { notes.append($0) }) {
    case .failure(let refusal):
      report("\(id): \(refusal.reason)", .refused)
      return nil
    case .success(let property):
      for reason in notes { report("\(id): \(reason)") }
      return property
    }
  }

  /// Creates a choice with the words under `key`; reports a missing or invalid list.
  mutating func choice(_ id: String, _ key: String, standard: [JSONValue] = []) -> ImportedProperty?
  {
    guard let values = ChoiceWords.field(config.elements(key) ?? standard) else {
      report("\(id): '\(key)' lists no words", .leftOut)
      return nil
    }
    var property = ImportedProperty(id, type: "choice")
    property["values"] = values
    return property
  }

  /// Creates an action whose words map to the payloads under the given keys.
  func action(
    _ id: String,
    _ words: [(word: String, key: String, standard: JSONValue)]
  ) -> ImportedProperty? {
    let present = words.compactMap { row in
      payload(row.key, else: row.standard).map { (word: row.word, wire: $0) }
    }
    guard let values = ChoiceWords.field(present) else { return nil }
    var property = ImportedProperty(id, type: "action")
    property["values"] = values
    return property
  }
}

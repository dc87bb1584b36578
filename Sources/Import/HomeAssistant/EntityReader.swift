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
  /// The keys of topics and templates that were read.
  private(set) var used: Set<String> = []

  var config: JSONValue { entity.config }

  init(_ entity: Entity) { self.entity = entity }

  mutating func report(_ reason: String, _ kind: ImportDiagnostic.Kind = .partly) {
    diagnostics.append((kind, reason))
  }

  // MARK: - Reading

  func text(_ key: String) -> String? { config[key]?.string }

  /// Whether it has a topic for the commands or the state of what `key` names.
  func has(_ key: String) -> Bool {
    config["\(key)_command_topic"] != nil || config["\(key)_state_topic"] != nil
  }

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
    used.insert(key)
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

  /// The topics and templates of the entity that no property has, the templates with their texts;
  /// topics that never have a value of their own are left out.
  var unused: [String] {
    let silent: Set = ["availability_topic", "json_attributes_topic", "availability_template"]
    let members = (config.members ?? []).filter { member in
      member.value.string?.isEmpty == false && !used.contains(member.name)
        && !silent.contains(member.name)
    }.sorted { $0.name < $1.name }
    let topics = members.map(\.name).filter { $0.hasSuffix("_topic") || $0.hasSuffix("_t") }
    let templates = members.filter { $0.name.hasSuffix("_template") || $0.name.hasSuffix("_tpl") }
    return (topics.isEmpty ? [] : [topics.joined(separator: ", ")])
      + templates.map { "\($0.name): \(Excerpt.of($0.value.string ?? "", limit: 200))" }
  }

  /// Does not count these topics as unused.
  mutating func skip(_ keys: [String]) { used.formUnion(keys) }

  /// The template under `key`, which is `nil` if it cannot be evaluated; `nil` without one.
  mutating func template(_ key: String) -> (text: String, template: Template?)? {
    used.insert(key)
    return text(key).map { ($0, try? Template($0)) }
  }

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

  /// Adds a property with its topics; one whose commands cannot be expressed is only read.
  mutating func add(_ property: ImportedProperty, by keys: TopicKeys) {
    // A part of an entity may have a state only.
    if config[keys.command] == nil, keys.command != "command_topic" {
      return addReading(property, by: keys)
    }
    guard let topic = topic(keys.command) else { return }
    let announced = property
    var property = property
    let meaning = keys.meaning ?? StateMeaning(property)
    var payload = JSONValue.string(PayloadTemplate.placeholder)
    let found = keys.commandTemplate.flatMap { template($0) }
    if found != nil || keys.isConverted {
      let source = found == nil ? Template.plain : found?.template
      let command = source.map { CommandTemplate(template: $0, variables: keys.variables) }
      guard let made = command.flatMap({ property.payload(of: $0) }) else {
        reportCommand(property.id, keys.commandTemplate ?? "", found?.text ?? "")
        return addReading(announced, by: keys)
      }
      payload = made
    }
    property.setCommand(to: topic, payload, qos: qos)
    if property["type"] != "action" { addState(to: &property, by: keys, meaning) }
    append(property)
  }

  /// Adds a power whose commands are two texts; returns whether they are two different words.
  mutating func add(
    power: ImportedProperty,
    on: String,
    off: String,
    reportedBy key: String,
    _ meaning: StateMeaning
  ) -> Bool {
    var power = power
    guard let shape = PayloadShape([on, off]), shape.values.count == 2,
      power.set([("true", shape.values[0]), ("false", shape.values[1])])
    else {
      report("power: its payloads for on and off are not two different words", .leftOut)
      return false
    }
    add(power, payload: shape.structure, reportedBy: key, meaning)
    return true
  }

  /// What the announced words for on and off mean; those of the commands, if there are none.
  func meaning(
    of property: ImportedProperty,
    on: String,
    off: String,
    standard: (on: JSONValue, off: JSONValue)? = Optional.none
  ) -> StateMeaning {
    var meaning = StateMeaning(property)
    for (place, word) in [config[on] ?? standard?.on, config[off] ?? standard?.off].enumerated() {
      if let word, word.isWord { meaning.words[place].text = TemplateValue(word).written }
    }
    return meaning
  }

  /// Adds a property whose payload is known, with the state topic and the template under `key`.
  mutating func add(
    _ property: ImportedProperty,
    payload: JSONValue,
    reportedBy key: String,
    _ meaning: StateMeaning
  ) {
    guard let topic = topic("command_topic") else { return }
    var property = property
    property.setCommand(to: topic, payload, qos: qos)
    if config[key] != nil {
      let before = used
      addState(to: &property, by: TopicKeys(stateTemplate: key), meaning)
      // Another property may report on the topic.
      if property["state"] == nil { used = before.union([key]) }
    }
    properties.append(property)
  }

  /// Adds a property that is complete.
  mutating func add(known property: ImportedProperty) { properties.append(property) }

  /// Adds a property without commands, if its state can be expressed.
  private mutating func addReading(_ property: ImportedProperty, by keys: TopicKeys) {
    guard config[keys.state] != nil, property["type"] != "action" else { return }
    let (before, reported) = (used, diagnostics)
    var property = property
    for field in ["policy", "excludes", "urgent", "ends"] { property[field] = Optional.none }
    addState(to: &property, by: keys, keys.meaning ?? StateMeaning(property))
    guard property["state"] == nil else { return append(property) }
    (used, diagnostics) = (before, reported)
  }

  private mutating func append(_ property: ImportedProperty) {
    var property = property
    if let name = entity.name, isSingle, name != property.id { property["name"] = .string(name) }
    properties.append(property)
  }

  mutating func reportCommand(_ id: String, _ key: String, _ text: String, limit: Int = 80) {
    report(
      "\(id): its \(key) cannot be translated: \(Excerpt.of(text, limit: limit))",
      .leftOut
    )
  }

  private mutating func addState(
    to property: inout ImportedProperty,
    by keys: TopicKeys,
    _ meaning: StateMeaning
  ) {
    guard let topic = topic(keys.state) else { return }
    let found = keys.stateTemplate.flatMap { template($0) }
    let isMapped =
      property["type"] == "choice"
      && property.words.contains { $0.word != $0.wire.scalarText }
    let source = found == nil && !isMapped ? Template.plain : found?.template
    if let source,
      let path = property.path(of: ReportTemplate(source, keys.stateVariables), meaning)
    {
      property.setState(on: topic, at: PlaceholderText.pointer(path.map { $0.scalarText ?? "" }))
    } else if let found {
      reportState(property.id, keys.stateTemplate ?? "", found.text)
    } else {
      report(
        "\(property.id): without a state; a template converts its commands, but not its reports"
      )
    }
  }

  mutating func reportState(_ id: String, _ key: String, _ text: String) {
    report(
      "\(id): without a state, as its \(key) cannot be translated: "
        + Excerpt.of(text, limit: 80)
    )
  }

  /// Adds a property whose command is a JSON object with the value as a member, besides `members`.
  mutating func add(
    _ property: ImportedProperty,
    member name: String,
    besides members: [JSONValue.Member] = []
  ) {
    guard let topic = topic("command_topic") else { return }
    var property = property
    let member = JSONValue.Member(name, .string(PayloadTemplate.placeholder))
    property.setCommand(to: topic, .object(members + [member]))
    if let state = self.topic("state_topic") {
      property.setState(on: state, at: PlaceholderText.pointer([name]))
    }
    properties.append(property)
  }

  /// Adds a read-only property, unless the template of its state cannot be expressed.
  mutating func add(
    reading property: ImportedProperty,
    _ state: String = "state_topic",
    template key: String = "value_template",
    meaning: StateMeaning? = Optional.none
  ) {
    guard let topic = topic(state) else { return }
    var property = property
    let found = template(key)
    let source = found == nil ? Template.plain : found?.template
    let meant = meaning ?? StateMeaning(property)
    let path = source.flatMap { property.path(of: ReportTemplate($0), meant) }
    guard let path else { return reportCommand(property.id, key, found?.text ?? "") }
    property.setState(on: topic, at: PlaceholderText.pointer(path.map { $0.scalarText ?? "" }))
    append(property)
  }

  // MARK: - Changing the last property

  /// Changes the last property.
  mutating func changeLast(_ change: (inout ImportedProperty) -> Void) {
    if let last = properties.indices.last { change(&properties[last]) }
  }

  /// Extends the last property's confirmation to the time of a movement.
  mutating func allowMovementTime() {
    guard let last = properties.indices.last, properties[last]["state"] != nil,
      !properties[last].isReadOnly
    else { return }
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
    step: (key: String, standard: Double)? = nil,
    unit: String?
  ) -> ImportedProperty? {
    var range = NumberRange()
    range.low = number(low.key) ?? low.standard
    range.high = number(high.key) ?? high.standard
    range.step = step.map { number($0.key) ?? $0.standard }
    range.unit = unit
    var notes: [String] = []
    do throws(Rejection) {
      let property = try range.property(id) { notes.append($0) }
      for reason in notes { report("\(id): \(reason)") }
      return property
    } catch {
      report("\(id): \(error.reason)", .refused)
      return nil
    }
  }

  /// Creates a choice with the words under `key`; reports a missing or invalid list.
  mutating func choice(_ id: String, _ key: String, standard: [JSONValue] = []) -> ImportedProperty?
  {
    guard let values = ChoiceWords.field(config.elements(key) ?? standard) else {
      report("\(id): '\(key)' lists no words", .leftOut)
      return nil
    }
    return ImportedProperty(id, type: "choice", ["values": values])
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
    return ImportedProperty(id, type: "action", ["values": values])
  }
}

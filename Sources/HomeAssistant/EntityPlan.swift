// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// Groups a device's properties into entities.
///
/// Properties with the names that profiles use for lights, covers, climate controls and fans become
/// one entity. Any other property becomes an entity for its type, a read-only one a sensor.
struct EntityPlan {
  private(set) var entities: [Entity] = []
  let device: Device
  let base: String
  /// The identifiers of properties that are part of an entity.
  var used: Set<String> = []
  /// The identifiers of read-only properties that are part of an entity.
  var shown: Set<String> = []

  init(_ device: Device, base: String) {
    self.device = device
    self.base = base
    let readings = device.properties.filter(\.isReadOnly)
    used = Set(readings.map(\.id))
    addLights()
    addFan()
    addCover()
    addClimate()
    let hasMain = !entities.isEmpty
    for property in device.properties where !used.contains(property.id) {
      let place = entities.count
      addSingle(property)
      guard property.isSetting(besideMain: hasMain) else { continue }
      for new in entities.indices.dropFirst(place) { entities[new].category = "config" }
    }
    // Home Assistant's convention: a device's only entity has the device's name. Sensors beside it
    // do not count, as they must not rename it.
    if entities.count == 1 { entities[0].title = nil }
    for reading in readings where !shown.contains(reading.id) {
      entities.append(.sensor(reading, state: target(reading)))
    }
    if entities.count == 1 { entities[0].title = nil }
  }

  // MARK: - Finding properties

  /// What the device reports and nobody sets.
  func reading(_ names: Set<String>, where fits: (ValueKind) -> Bool) -> Property? {
    let all = device.properties.filter { $0.isReadOnly && fits($0.kind) }
    return all.first { names.contains($0.id) } ?? all.first { $0.isCalled(names) }
  }

  func find(_ names: Set<String>, where fits: (ValueKind) -> Bool) -> Property? {
    let free = device.properties.filter { !used.contains($0.id) && fits($0.kind) }
    return free.first { names.contains($0.id) } ?? free.first { $0.isCalled(names) }
  }

  static func isNumber(_ kind: ValueKind) -> Bool { kind.numberRule != nil }

  private static func isBoolean(_ kind: ValueKind) -> Bool {
    if case .boolean = kind { true } else { false }
  }

  static func isChoice(_ kind: ValueKind) -> Bool {
    if case .choice = kind { true } else { false }
  }

  /// The property that switches a lamp or fan.
  var power: Property? { find(["power", "state", "on"], where: Self.isBoolean) }

  // MARK: - Fields

  func target(_ property: Property) -> JSONValue {
    .string("\(base)/\(device.id)/\(property.id)")
  }

  func command(_ property: Property) -> JSONValue {
    .string("\(base)/\(device.id)/\(property.id)/set")
  }

  /// The command and state topics: `brightness_command_topic` for the prefix `brightness_`.
  func topics(_ property: Property, _ prefix: String = "") -> [JSONValue.Member] {
    [
      .init("\(prefix)command_topic", command(property)),
      .init("\(prefix)state_topic", target(property)),
    ]
  }

  func number(_ name: String, _ value: Double?) -> [JSONValue.Member] {
    value.map { [.init(name, JSONValue(shortest: $0))] } ?? []
  }

  mutating func add(
    _ platform: String,
    _ main: Property,
    titled title: String?,
    _ fields: [JSONValue.Member],
    using parts: [Property?] = []
  ) {
    entities.append(Entity(platform: platform, name: main.id, title: title, fields: fields))
    used.insert(main.id)
    for part in parts { if let part { used.insert(part.id) } }
  }

  // MARK: - Entities of several properties

  private mutating func addLights() {
    for light in Light.all(in: device.properties) {
      let main = device.properties[light.main]
      let topic = "\(base)/\(device.id)/\(main.id)"
      // A lamp with a name of its own is one of several endpoints.
      let title = light.ending.isEmpty ? nil : Property.title(of: String(light.ending.dropFirst()))
      add(
        "light",
        main,
        titled: title,
        light.fields(device.properties, below: topic),
        using: light.places.map { device.properties[$0] }
      )
      shown.formUnion(light.places.map { device.properties[$0] }.filter(\.isReadOnly).map(\.id))
    }
  }

  // MARK: - Entities of one property

  private mutating func addSingle(_ property: Property) {
    var fields = topics(property)
    switch property.kind {
    case .boolean where property.isLock:
      fields += [
        .init("payload_lock", "true"), .init("payload_unlock", "false"),
        .init("state_locked", "true"), .init("state_unlocked", "false"),
        .init("optimistic", false),
      ]
      add("lock", property, titled: property.title, fields)
    case .boolean:
      fields += [
        .init("payload_on", "true"), .init("payload_off", "false"), .init("optimistic", false),
      ]
      add("switch", property, titled: property.title, fields)
    case .number(let rule), .integer(let rule):
      let isWhole = if case .integer = property.kind { true } else { false }
      fields += numberFields(rule, isWhole: isWhole)
      add("number", property, titled: property.title, fields)
    case .choice(let words):
      fields += [.init("options", .array(words.map { .string($0) })), .init("optimistic", false)]
      add("select", property, titled: property.title, fields)
    case .text, .color:
      add("text", property, titled: property.title, fields)
    case .action(let words): addButtons(property, words)
    }
  }

  private func numberFields(_ rule: NumberRule, isWhole: Bool) -> [JSONValue.Member] {
    let range = rule.range ?? -1e9...1e9
    var fields = number("min", range.lowerBound) + number("max", range.upperBound)
    // Home Assistant accepts no smaller step.
    fields += number("step", max(rule.step ?? (isWhole ? 1 : 0.01), 0.001))
    fields.append(.init("mode", rule.range == nil ? "box" : "slider"))
    if let unit = rule.unit { fields.append(.init("unit_of_measurement", .string(unit))) }
    fields.append(.init("optimistic", false))
    return fields
  }

  /// Adds a button for each word, or a text entity for an action that accepts any word.
  private mutating func addButtons(_ property: Property, _ words: [String]) {
    used.insert(property.id)
    guard !words.isEmpty else {
      return add("text", property, titled: property.title, topics(property))
    }
    for word in words {
      var name = Entity.uniqueID(property.id, word)
      // Two words that differ in signs alone, or a property that is called like this.
      while device.properties.contains(where: { $0.id == name })
        || entities.contains(where: { $0.name == name })
      { name += "_" }
      entities.append(
        Entity(
          platform: "button",
          name: name,
          title: words.count == 1 ? property.title : "\(property.title) \(word)",
          fields: [
            .init("command_topic", command(property)), .init("payload_press", .string(word)),
          ]
        )
      )
    }
  }
}

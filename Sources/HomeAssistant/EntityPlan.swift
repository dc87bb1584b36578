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

/// Entities of several properties, apart from lamps.
extension EntityPlan {
  mutating func addFan() {
    guard let power,
      let speed = find(["speed", "percentage", "fan_speed", "speed_level"], where: Self.isNumber)
    else { return }
    var fields = topics(power)
    fields += [
      .init("payload_on", "true"), .init("payload_off", "false"), .init("optimistic", false),
    ]
    // Home Assistant sends a speed of 0 to turn a fan off.
    let members = "'{\"\(power.id)\":false}' if value == 0 else '{\"\(speed.id)\":%s}' % value"
    fields += [
      .init("percentage_command_topic", .string("\(base)/\(device.id)/set")),
      .init("percentage_command_template", .string("{{ \(members) }}")),
      .init("percentage_state_topic", target(speed)),
    ]
    let range = speed.kind.numberRule?.range ?? 0...100
    fields += number("speed_range_min", max(1, range.lowerBound))
    fields += number("speed_range_max", max(2, range.upperBound))
    let preset = find(["mode", "preset", "preset_mode"], where: Self.isChoice)
    if let preset, case .choice(let words) = preset.kind {
      fields += topics(preset, "preset_mode_")
      fields.append(.init("preset_modes", .array(words.map { .string($0) })))
    }
    add("fan", power, titled: nil, fields, using: [speed, preset])
  }

  mutating func addCover() {
    let position = find(["position"], where: Self.isNumber)
    var movement: (Property, CoverPayloads)?
    for property in device.properties where movement == nil && !used.contains(property.id) {
      movement = CoverPayloads(property).map { (property, $0) }
    }
    guard let main = movement?.0 ?? position, movement != nil || position != nil else { return }
    var fields: [JSONValue.Member] = []
    let range = position?.kind.numberRule?.range ?? 0...100
    if let (property, payloads) = movement {
      fields.append(.init("command_topic", command(property)))
      fields += payloads.fields
    } else if let position {
      fields += [
        .init("command_topic", command(position)),
        .init("payload_open", .string(JSONWriter.text(JSONValue(shortest: range.upperBound)))),
        .init("payload_close", .string(JSONWriter.text(JSONValue(shortest: range.lowerBound)))),
        .init("payload_stop", .null),
      ]
    }
    if let position {
      fields += [
        .init("set_position_topic", command(position)), .init("position_topic", target(position)),
      ]
      fields += number("position_open", range.upperBound)
      fields += number("position_closed", range.lowerBound)
    }
    if let tilt = find(["tilt", "slats"], where: Self.isNumber) {
      fields += [
        .init("tilt_command_topic", command(tilt)), .init("tilt_status_topic", target(tilt)),
      ]
      let range = tilt.kind.numberRule?.range ?? 0...100
      fields += number("tilt_min", range.lowerBound) + number("tilt_max", range.upperBound)
      fields += number("tilt_opened_value", range.upperBound)
      fields += number("tilt_closed_value", range.lowerBound)
      used.insert(tilt.id)
    }
    fields.append(.init("optimistic", false))
    add("cover", main, titled: nil, fields, using: [position])
  }

  /// The modes of Home Assistant's climate controls.
  private static let climateModes = [
    "auto", "off", "cool", "heat", "dry", "fan_only", "heat_cool",
  ]

  /// What thermostats say of their work, in Home Assistant's words; others are none.
  private static let action = """
    {{ {'off': 'off', 'idle': 'idle', 'heat': 'heating', 'heating': 'heating', 'cool': 'cooling', \
    'cooling': 'cooling', 'dry': 'drying', 'drying': 'drying', 'fan_only': 'fan', 'fan': 'fan'}\
    .get(value, 'None') }}
    """

  mutating func addClimate() {
    let names: Set = ["target_temperature", "setpoint", "occupied_heating_setpoint"]
    guard let target = find(names, where: Self.isNumber), let rule = target.kind.numberRule else {
      return
    }
    var fields = topics(target, "temperature_")
    fields += number("min_temp", rule.range?.lowerBound)
    fields += number("max_temp", rule.range?.upperBound)
    fields += number("temp_step", rule.step)
    fields.append(.init("temperature_unit", rule.unit?.hasSuffix("F") == true ? "F" : "C"))
    let mode = find(["mode", "system_mode"]) { kind in
      guard case .choice(let words) = kind else { return false }
      return words.allSatisfy { Self.climateModes.contains($0) }
    }
    if let mode, case .choice(let words) = mode.kind {
      fields += topics(mode, "mode_")
      fields.append(.init("modes", .array(words.map { .string($0) })))
    } else {
      // A thermostat without modes always heats.
      fields += [
        .init("modes", ["heat"]), .init("mode_state_topic", self.target(target)),
        .init("mode_state_template", "heat"),
      ]
    }
    let preset = find(["preset", "preset_mode"], where: Self.isChoice)
    if let preset, let words = preset.kind.words {
      fields += topics(preset, "preset_mode_")
      // Home Assistant adds `none` by itself.
      let named = words.filter { $0 != "none" }
      fields.append(.init("preset_modes", .array(named.map { .string($0) })))
    }
    let current: Set = ["local_temperature", "current_temperature", "temperature"]
    if let current = reading(current, where: Self.isNumber) {
      fields.append(.init("current_temperature_topic", self.target(current)))
      shown.insert(current.id)
    }
    let action = reading(["running_state", "hvac_action", "action"]) {
      $0.words != nil || $0 == .text
    }
    if let action {
      shown.insert(action.id)
      fields += [
        .init("action_topic", self.target(action)), .init("action_template", .string(Self.action)),
      ]
    }
    fields.append(.init("optimistic", false))
    add("climate", target, titled: nil, fields, using: [mode, preset])
  }
}

/// The payloads with which a property opens, closes and stops a cover.
struct CoverPayloads {
  private let open: String
  private let close: String
  private let stop: String?

  /// `nil` unless the property has words that open and close a cover.
  init?(_ property: Property) {
    let words: [String]
    switch property.kind {
    case .action(let all), .choice(let all): words = all
    case .number, .integer, .boolean, .text, .color: return nil
    }
    func word(_ names: String...) -> String? {
      words.first { names.contains($0.lowercased()) }
    }
    guard let open = word("open", "up"), let close = word("close", "down") else { return nil }
    self.open = open
    self.close = close
    stop = word("stop", "halt")
  }

  /// The payloads as fields of a cover's announcement.
  var fields: [JSONValue.Member] {
    [
      .init("payload_open", .string(open)), .init("payload_close", .string(close)),
      .init("payload_stop", stop.map { .string($0) } ?? .null),
    ]
  }
}

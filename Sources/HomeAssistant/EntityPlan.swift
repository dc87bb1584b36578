// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
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
    addCovers()
    addThermostats()
    addSirens()
    let hasMain = !entities.isEmpty
    for property in device.properties where !used.contains(property.id) {
      let place = entities.count
      addSingle(property)
      let isSetting = property.isSetting(besideMain: hasMain)
      let category = property.category?.rawValue ?? (isSetting ? "config" : nil)
      for new in entities.indices.dropFirst(place) { entities[new].category = category }
    }
    // Home Assistant's convention: a device's only entity has the device's name. Sensors beside it
    // do not count, as they must not rename it.
    if entities.count == 1 { entities[0].title = nil }
    for reading in readings where !shown.contains(reading.id) {
      entities.append(.event(reading) ?? .sensor(reading, state: target(reading)))
    }
    if entities.count == 1 { entities[0].title = nil }
    if !entities.isEmpty, device.showsProblems {
      let isTaken = entities.contains { $0.name == "problem" }
      entities.append(.problem(named: isTaken ? "problem_" : "problem", of: device, base: base))
    }
  }

  // MARK: - Finding properties

  /// What the device reports and nobody sets.
  func reading(_ names: Set<String>, where fits: (ValueKind) -> Bool) -> Property? {
    let all = device.properties.filter { $0.isReadOnly && fits($0.kind) }
    return all.first { names.contains($0.id) } ?? all.first { $0.isCalled(names) }
  }

  /// What can be set and is part of no entity yet; earlier names count first.
  func find(_ names: [String], where fits: (ValueKind) -> Bool) -> Property? {
    let free = device.properties.filter { !used.contains($0.id) && fits($0.kind) }
    for name in names {
      if let found = free.first(where: { $0.id == name }) { return found }
    }
    return free.first { $0.isCalled(Set(names)) }
  }

  /// The endings of what is part of no entity yet and fits.
  func endings(of stems: [String], where fits: (Property) -> Bool) -> [String] {
    device.properties.filter { !used.contains($0.id) && fits($0) }.endings(of: stems)
  }

  static func isNumber(_ kind: ValueKind) -> Bool { kind.numberRule != nil }

  static func isBoolean(_ kind: ValueKind) -> Bool { kind == .boolean }

  static func isChoice(_ kind: ValueKind) -> Bool {
    if case .choice = kind { true } else { false }
  }

  /// The name of a part, such as an endpoint; `nil` for the device itself.
  static func title(ofEnding ending: String) -> String? {
    ending.isEmpty ? nil : Identifiers.title(of: String(ending.dropFirst()))
  }

  // MARK: - Fields

  func target(_ property: Property) -> JSONValue {
    .string("\(base)/\(device.id)/\(property.id)")
  }

  func command(_ property: Property) -> JSONValue {
    .string("\(base)/\(device.id)/\(property.id)/set")
  }

  /// The topic of several properties of the device.
  var commandOfAll: JSONValue { .string("\(base)/\(device.id)/set") }

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

  static func words(_ words: some Sequence<String>) -> JSONValue {
    .array(words.map { .string($0) })
  }

  /// The class of an entity, if Home Assistant has it for such entities.
  func deviceClass(_ property: Property, of classes: Set<String>) -> [JSONValue.Member] {
    guard let word = property.deviceClass ?? device.deviceClass, classes.contains(word) else {
      return []
    }
    return [.init("device_class", .string(word))]
  }

  mutating func add(
    _ platform: String,
    _ main: Property,
    titled title: String?,
    _ fields: [JSONValue.Member],
    using parts: [Property?] = []
  ) {
    entities.append(
      Entity(
        platform: platform,
        name: main.id,
        title: title,
        category: main.category?.rawValue,
        fields: fields
      )
    )
    used.insert(main.id)
    for part in parts { if let part { used.insert(part.id) } }
  }

  // MARK: - Lamps

  private mutating func addLights() {
    for light in Light.all(in: device) {
      let main = device.properties[light.main]
      let topic = "\(base)/\(device.id)/\(main.id)"
      add(
        "light",
        main,
        // A lamp with a name of its own is one of several.
        titled: light.ending.isEmpty ? nil : main.name ?? Self.title(ofEnding: light.ending),
        light.fields(device, below: topic),
        using: light.places.map { device.properties[$0] }
      )
      shown.formUnion(light.places.map { device.properties[$0] }.filter(\.isReadOnly).map(\.id))
    }
  }

  // MARK: - Entities of one property

  static let onAndOff: [JSONValue.Member] = [
    .init("payload_on", "true"), .init("payload_off", "false"), .init("optimistic", false),
  ]

  private mutating func addSingle(_ property: Property) {
    var fields = topics(property)
    switch property.kind {
    case .boolean where property.isLock || device.entityClass(of: property) == "lock":
      fields += [
        .init("payload_lock", "true"), .init("payload_unlock", "false"),
        .init("state_locked", "true"), .init("state_unlocked", "false"),
        .init("optimistic", false),
      ]
      add("lock", property, titled: property.title, fields)
    case .boolean where device.entityClass(of: property) == "valve":
      fields += [
        .init("payload_open", "true"), .init("payload_close", "false"),
        .init("state_open", "true"), .init("state_closed", "false"), .init("optimistic", false),
      ]
      add("valve", property, titled: property.title, fields)
    case .boolean where device.entityClass(of: property) == "fan":
      add("fan", property, titled: property.title, fields + Self.onAndOff)
    case .boolean:
      fields += Self.onAndOff + deviceClass(property, of: DeviceClass.switches)
      add("switch", property, titled: property.title, fields)
    case .number(let rule), .integer(let rule):
      let isWhole = if case .integer = property.kind { true } else { false }
      fields += numberFields(rule, isWhole: isWhole)
      if let word = property.deviceClass, SensorClass.fits(word, unit: rule.unit) {
        fields.append(.init("device_class", .string(word)))
      }
      add("number", property, titled: property.title, fields)
    case .choice(let words):
      fields += [.init("options", Self.words(words)), .init("optimistic", false)]
      add("select", property, titled: property.title, fields)
    case .text, .color:
      add("text", property, titled: property.title, fields)
    case .action(let words): addButtons(property, words)
    }
  }

  /// A slider of more steps than its length on a screen is of no use.
  private static let longestSlider = 256.0

  private func numberFields(_ rule: NumberRule, isWhole: Bool) -> [JSONValue.Member] {
    let range = rule.range ?? -1e9...1e9
    // Home Assistant accepts no smaller step.
    let step = max(rule.step ?? (isWhole ? 1 : 0.01), 0.001)
    let isLong = (range.upperBound - range.lowerBound) / step > Self.longestSlider
    var fields = number("min", range.lowerBound) + number("max", range.upperBound)
    fields += number("step", step)
    fields.append(.init("mode", isLong ? "box" : "slider"))
    if let unit = rule.unit { fields.append(.init("unit_of_measurement", .string(unit))) }
    fields.append(.init("optimistic", false))
    return fields
  }

  private func buttonClass(_ property: Property) -> [JSONValue.Member] {
    let isNamed = property.deviceClass == nil && property.id.hasPrefix("identify")
    return isNamed
      ? [.init("device_class", "identify")] : deviceClass(property, of: DeviceClass.buttons)
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
          ] + buttonClass(property)
        )
      )
    }
  }
}

extension Device {
  /// The class of a property; that of the device for its switch, and for all that it has to set.
  func entityClass(of property: Property) -> String? {
    if let stated = property.deviceClass { return stated }
    let isAll = property.isCalled(["power", "state", "on"]) && property.kind == .boolean
    return isAll || properties.count(where: { !$0.isReadOnly }) == 1 ? deviceClass : nil
  }
}

extension [Property] {
  /// What the names of parts end with, nothing first: `_l1` where there is a `power_l1`.
  func endings(of stems: [String]) -> [String] {
    var endings = [""]
    for name in flatMap({ [$0.id] + $0.aliases }) {
      for stem in stems where name.hasPrefix(stem + "_") {
        let ending = String(name.dropFirst(stem.count))
        if !endings.contains(ending) { endings.append(ending) }
      }
    }
    return endings
  }
}

/// What a property is for.
extension Property {
  /// Whether the identifier or an alias is one of `names`.
  func isCalled(_ names: Set<String>) -> Bool {
    names.contains(id) || aliases.contains { names.contains($0) }
  }

  /// Whether it locks and unlocks something; the buttons of a device are none.
  var isLock: Bool {
    guard kind == .boolean else { return false }
    if let deviceClass { return deviceClass == "lock" }
    let words = id.lowercased().split { $0 == "_" || $0 == "-" }
    return wire.on?.string?.lowercased() == "lock" && words.first == "lock"
      || isCalled(["lock", "locked"])
  }

  /// Whether it sets up its device, rather than being what the device is for.
  ///
  /// Beside a lamp, fan, cover or thermostat everything does but switches and locks of their own;
  /// elsewhere the name says so.
  func isSetting(besideMain: Bool) -> Bool {
    let words = id.lowercased().split { $0 == "_" || $0 == "-" }
    if words.contains(where: { Self.settingWords.contains($0) }) { return true }
    guard besideMain else { return false }
    return !isLock && !["power", "state", "on"].contains(words.first)
  }

  /// Words in the names of settings, as bridges name them.
  private static let settingWords: Set<Substring> = [
    "backlight", "behavior", "calibration", "child", "identify", "indicator", "led", "memory",
    "options", "sensitivity", "startup", "threshold", "timeout",
  ]
}

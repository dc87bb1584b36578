// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
package import Devices
import JSON
import Values

/// One entity of Home Assistant.
struct Entity {
  /// The type in Home Assistant, such as `light` or `number`.
  let platform: String
  /// The identifier of the property, or of the main one of several; unique in its device.
  let name: String
  /// The display name; `nil` for the name of the device.
  var title: String?
  /// `config` where the entity sets up its device, `diagnostic` where it is about the device
  /// itself; `nil` where it is what the device is for.
  var category: String?
  /// The topics, payloads and options in the announcement.
  var fields: [JSONValue.Member]

  /// All members of the announcement.
  func members(of device: Device, base: String) -> [JSONValue.Member] {
    [
      .init("p", .string(platform)),
      .init("unique_id", .string(Self.uniqueID(base, device.id, name))),
      .init("name", title.map { .string($0) } ?? .null),
    ] + (category.map { [.init("entity_category", .string($0))] } ?? []) + fields
      + members(ofGroup: device.group, base: base)
  }

  /// The same entities of a group's members, which Home Assistant 2026.4 shows with it.
  private func members(ofGroup group: DeviceGroup?, base: String) -> [JSONValue.Member] {
    guard let group, ["light", "switch", "cover", "lock", "fan"].contains(platform) else {
      return []
    }
    let ids = group.members.map { JSONValue.string(Self.uniqueID(base, $0, name)) }
    return [.init("group", .array(ids))]
  }

  /// Joins parts to an identifier of letters, digits, `_` and `-`.
  static func uniqueID(_ parts: String...) -> String {
    let text = parts.joined(separator: "_")
    return String(
      text.unicodeScalars.map { scalar in
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "-": Character(scalar)
        default: "_"
        }
      }
    )
  }
}

extension Device {
  /// Whether it has an entity for failed commands: its own commands can be confirmed.
  var showsProblems: Bool {
    group == nil
      && properties.contains { $0.confirm != nil && !$0.states.isEmpty && !$0.isReadOnly }
  }

  /// The topic that such an entity reads.
  func problemTopic(below base: String) -> String { "\(base)/status/\(id)/problem" }
}

extension Property {
  /// The display name, derived from the identifier if none is set.
  var title: String {
    if let name { return name }
    // The switch of an endpoint is called like the endpoint.
    let isOfEndpoint = kind == .boolean && id.hasPrefix("power_")
    return Identifiers.title(of: isOfEndpoint ? String(id.dropFirst(6)) : id)
  }
}

extension Entity {
  /// The event entity of what happens at a moment, such as a button of a remote; `nil` for any
  /// other reading.
  ///
  /// The topic is the device's own: the same event twice is twice an event.
  static func event(_ property: Property) -> Entity? {
    guard let word = property.deviceClass, DeviceClass.events.contains(word),
      let words = property.kind.words, !words.isEmpty, property.wire.words.isEmpty,
      let source = property.reportSource
    else { return nil }
    let path = source.value.tokens.map { "[\(JSONWriter.text(.string($0)))]" }.joined()
    let found = path.isEmpty ? "value" : "value_json\(path) | default('')"
    let types = JSONWriter.text(EntityPlan.words(words))
    let template = """
      {% set event = \(found) %}\
      {% if event in \(types) %}{{ {'event_type': event} | tojson }}{% endif %}
      """
    return Entity(
      platform: "event",
      name: property.id,
      title: property.title,
      fields: [
        .init("state_topic", .string(source.topic)), .init("event_types", EntityPlan.words(words)),
        .init("value_template", .string(template)),
      ] + (word == "remote" ? [] : [.init("device_class", .string(word))])
    )
  }

  /// Whether commands of a device fail: on while the newest one of a key has.
  ///
  /// It is there while the device is away, because that is when commands expire.
  static func problem(named name: String, of device: Device, base: String) -> Entity {
    let topic = JSONValue.string(device.problemTopic(below: base))
    // The message is removed with the device, and empty then.
    let attributes = """
      {% if value_json is defined %}{{ {'key': value_json.key, 'value': value_json.value, \
      'reason': value_json.reason} | tojson }}{% else %}{}{% endif %}
      """
    return Entity(
      platform: "binary_sensor",
      name: name,
      title: "Problem",
      category: "diagnostic",
      fields: [
        .init("state_topic", topic),
        .init("value_template", "{{ value_json.state if value_json is defined else 'off' }}"),
        .init("payload_on", "on"), .init("payload_off", "off"), .init("device_class", "problem"),
        .init("json_attributes_topic", topic),
        .init("json_attributes_template", .string(attributes)),
        .init("availability", .array([.object(["topic": .string("\(base)/status")])])),
      ]
    )
  }

  /// The sensor or binary sensor of a read-only property, whose values are published on `topic`.
  static func sensor(_ property: Property, state topic: JSONValue) -> Entity {
    var fields = [JSONValue.Member("state_topic", topic)]
    func add(_ name: String, _ value: String?) {
      if let value { fields.append(.init(name, .string(value))) }
    }
    let isBinary = property.kind == .boolean
    switch property.kind {
    case .boolean:
      let isReversed = SensorClass.isReversed(property)
      add("payload_on", isReversed ? "false" : "true")
      add("payload_off", isReversed ? "true" : "false")
      add("device_class", SensorClass.ofBoolean(property))
    case .number(let rule), .integer(let rule):
      let stated = property.deviceClass.flatMap {
        SensorClass.fits($0, unit: rule.unit) ? $0 : nil
      }
      let found = stated ?? SensorClass.ofNumber(property, unit: rule.unit)
      add("device_class", found)
      let isTotal = SensorClass.totals.contains(found ?? "")
      add("state_class", isTotal ? "total_increasing" : "measurement")
      add("unit_of_measurement", rule.unit)
    case .choice(let words):
      add("device_class", "enum")
      fields.append(.init("options", .array(words.map { .string($0) })))
    case .text, .color, .action: break
    }
    return Entity(
      platform: isBinary ? "binary_sensor" : "sensor",
      name: property.id,
      title: property.title,
      // Home Assistant has no settings that can only be read.
      category: property.category != nil || SensorClass.isDiagnostic(property)
        ? "diagnostic" : nil,
      fields: fields
    )
  }
}

/// Home Assistant's classes of sensors, from units and from the names that devices use.
///
/// Home Assistant rejects a class that does not go with the unit.
package enum SensorClass {
  /// The classes of numbers that only grow.
  static let totals: Set = ["energy", "gas", "water"]

  private static let ofUnits = [
    "°C": "temperature", "°F": "temperature", "W": "power", "kW": "power", "VA": "apparent_power",
    "var": "reactive_power", "Wh": "energy", "kWh": "energy", "MWh": "energy", "V": "voltage",
    "mV": "voltage", "A": "current", "mA": "current", "Hz": "frequency", "lx": "illuminance",
    "hPa": "pressure", "mbar": "pressure", "kPa": "pressure", "bar": "pressure", "Pa": "pressure",
    "dBm": "signal_strength", "W/m²": "irradiance", "kg": "weight", "g": "weight",
  ]

  /// Classes by a word of the name, where the unit has several meanings.
  private static let ofNames: [(unit: String, word: String, name: String)] = [
    ("%", "battery", "battery"), ("%", "soil_moisture", "moisture"), ("%", "humidity", "humidity"),
    ("ppm", "co2", "carbon_dioxide"), ("ppm", "carbon_dioxide", "carbon_dioxide"),
    ("µg/m³", "pm25", "pm25"), ("µg/m³", "pm10", "pm10"),
    ("µg/m³", "voc", "volatile_organic_compounds"), ("m³", "gas", "gas"), ("m³", "water", "water"),
    ("L", "water", "water"), ("m", "distance", "distance"), ("cm", "distance", "distance"),
  ]

  private static let ofBooleans = [
    "contact": "door", "door": "door", "window": "window", "opening": "opening",
    "occupancy": "occupancy", "presence": "presence", "motion": "motion", "moving": "moving",
    "vibration": "vibration", "water_leak": "moisture", "leak": "moisture", "smoke": "smoke",
    "gas": "gas", "carbon_monoxide": "carbon_monoxide", "tamper": "tamper",
    "battery_low": "battery", "charging": "battery_charging", "problem": "problem",
    "fault": "problem", "update_available": "update", "running": "running",
  ]

  private static let diagnostic: Set = [
    "battery", "battery_low", "device_temperature", "firmware", "last_seen", "linkquality", "lqi",
    "power_outage_count", "rssi", "signal", "signal_strength", "snr", "update_available", "uptime",
    "wifi_signal",
  ]

  static func ofNumber(_ property: Property, unit: String?) -> String? {
    guard let unit else { return nil }
    if let found = ofUnits[unit] { return found }
    let names = ([property.id] + property.aliases).map { $0.lowercased() }
    return ofNames.first { known in
      known.unit == unit && names.contains { $0.has(known.word) }
    }?.name
  }

  /// Whether a class goes with a unit, as far as units are known here.
  static func fits(_ name: String, unit: String?) -> Bool {
    guard DeviceClass.numbers.contains(name) else { return false }
    let units =
      ofUnits.filter { $0.value == name }.map(\.key)
      + ofNames.filter { $0.name == name }.map(\.unit)
    return units.isEmpty || unit.map { units.contains($0) || ofUnits[$0] == nil } ?? false
  }

  static func ofBoolean(_ property: Property) -> String? {
    if let stated = property.deviceClass, DeviceClass.binarySensors.contains(stated) {
      return stated
    }
    return ([property.id] + property.aliases).lazy.compactMap { ofBooleans[$0] }.first
  }

  /// Whether false stands for on, which is an open door: Zigbee2MQTT reports `contact: true` of a
  /// closed one.
  ///
  /// A file that has words for on and off says itself which of them is on.
  package static func isReversed(_ property: Property) -> Bool {
    let wire = property.wire
    let isOfEndpoint = property.id.hasPrefix("contact_") && property.deviceClass == "door"
    return (isOfEndpoint || property.isCalled(["contact"])) && wire.on == nil && wire.off == nil
      && wire.reportedOn == nil && wire.reportedOff == nil
  }

  /// Whether it is about the device itself, such as its battery and its signal.
  static func isDiagnostic(_ property: Property) -> Bool { property.isCalled(diagnostic) }
}

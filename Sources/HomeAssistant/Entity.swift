// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
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

extension Property {
  /// The display name, derived from the identifier if none is set.
  var title: String {
    name ?? Self.title(of: id)
  }

  /// An identifier as words: `target_temperature` becomes `Target temperature`.
  static func title(of id: String) -> String {
    let words = id.split(whereSeparator: { $0 == "_" || $0 == "-" }).joined(separator: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }
}

extension Entity {
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
      let found = SensorClass.ofNumber(property, unit: rule.unit)
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
      category: SensorClass.isDiagnostic(property) ? "diagnostic" : nil,
      fields: fields
    )
  }
}

/// Home Assistant's classes of sensors, from units and from the names that devices use.
///
/// Home Assistant rejects a class that does not go with the unit.
enum SensorClass {
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

  static func ofBoolean(_ property: Property) -> String? {
    ([property.id] + property.aliases).lazy.compactMap { ofBooleans[$0] }.first
  }

  /// Whether false stands for on: a contact that is true is closed, and on is an open door.
  static func isReversed(_ property: Property) -> Bool {
    property.isCalled(["contact"]) && property.wire.on != false
  }

  /// Whether it is about the device itself, such as its battery and its signal.
  static func isDiagnostic(_ property: Property) -> Bool { property.isCalled(diagnostic) }
}

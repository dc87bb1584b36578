// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

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

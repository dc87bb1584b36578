// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// Thermostats, water heaters and humidifiers.
enum ClimateEntity {
  private static let setpoint: JSONValue = .object(["delay": "800ms", "max_wait": "none"])

  static func read(_ reader: inout EntityReader) {
    // A thermostat has neither, but inherits those of its device.
    reader.skip(["command_topic", "state_topic"])
    if reader.config["power_command_topic"] != nil, let power = reader.boolean("power") {
      reader.add(power, by: TopicKeys("power", stateTemplate: "state_template"))
    }
    let unit = reader.text("temperature_unit") == "F" ? "°F" : "°C"
    for key in ["temperature", "temperature_high", "temperature_low"] where reader.has(key) {
      let isHeater = reader.entity.platform == "water_heater"
      let made = reader.number(
        "target_\(key)",
        low: ("min_temp", isHeater ? 43 : 7),
        high: ("max_temp", isHeater ? 60 : 35),
        step: ("temp_step", 1),
        unit: unit
      )
      guard var made else { continue }
      made["policy"] = setpoint
      reader.add(made, by: TopicKeys(key, stateTemplate: "state_template"))
    }
    readModes(&reader)
    addHumidity(&reader)
    addReadings(&reader, unit: unit)
  }

  /// What the device measures and does.
  private static func addReadings(_ reader: inout EntityReader, unit: String) {
    for (key, unit) in [("current_temperature", unit), ("current_humidity", "%")]
    where reader.config["\(key)_topic"] != nil {
      let made = ImportedProperty(key, type: "number", ["unit": .string(unit)])
      reader.add(reading: made, "\(key)_topic", template: "\(key)_template")
    }
    guard reader.config["action_topic"] != nil else { return }
    var action = ImportedProperty("action", type: "choice")
    action["values"] = ["off", "heating", "cooling", "drying", "idle", "fan"]
    reader.add(reading: action, "action_topic", template: "action_template")
  }

  private static func readModes(_ reader: inout EntityReader) {
    let standard: [JSONValue] = ["auto", "off", "cool", "heat", "dry", "fan_only"]
    if reader.has("mode"),
      var mode = reader.choice("mode", "modes", standard: standard)
    {
      let ended = reader.properties.map(\.id).filter { $0.hasPrefix("target_temperature") }
      if mode["values"]?.elements?.contains("off") == true, !ended.isEmpty {
        mode["urgent"] = ["off"]
        mode["ends"] = .array(ended.map { .string($0) })
      }
      reader.add(mode, by: TopicKeys("mode", stateTemplate: "state_template"))
    }
    let others: [(key: String, standard: [JSONValue])] = [
      ("fan_mode", ["auto", "low", "medium", "high"]), ("swing_mode", ["on", "off"]),
      ("swing_horizontal_mode", ["on", "off"]),
    ]
    for (key, standard) in others where reader.has(key) {
      if let mode = reader.choice(key, "\(key)s", standard: standard) {
        reader.add(mode, by: TopicKeys(key, stateTemplate: "state_template"))
      }
    }
    FanEntity.readPreset(&reader)
  }

  static func readHumidifier(_ reader: inout EntityReader) {
    if let power = reader.boolean("power") {
      reader.add(power, by: TopicKeys(stateTemplate: "state_value_template"))
    }
    addHumidity(&reader)
    guard reader.config["mode_command_topic"] != nil, let mode = reader.choice("mode", "modes")
    else { return }
    reader.add(mode, by: TopicKeys("mode", stateTemplate: "state_template"))
  }

  private static func addHumidity(_ reader: inout EntityReader) {
    guard reader.config["target_humidity_command_topic"] != nil else { return }
    let humidity = reader.number(
      "target_humidity",
      low: ("min_humidity", 0),
      high: ("max_humidity", 100),
      unit: "%"
    )
    guard var humidity else { return }
    humidity["policy"] = setpoint
    reader.add(humidity, by: TopicKeys("target_humidity", stateTemplate: "state_template"))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// The platforms of entities: which of them can be imported, and how.
enum EntityPlatform {
  /// Platforms without commands.
  static let readings: Set = ["sensor", "binary_sensor"]

  /// Platforms with neither commands nor a value that lasts.
  static let skipped: Set = [
    "device_tracker", "event", "device_automation", "tag", "camera",
    "image", "update", "weather",
  ]

  /// Platforms of entities with several values.
  static let combined: Set = [
    "light", "cover", "valve", "fan", "climate", "water_heater", "humidifier", "vacuum",
  ]

  /// Creates the entity's properties.
  static func read(_ reader: inout EntityReader) {
    let platform = reader.entity.platform
    switch platform {
    case "sensor": SensorEntity.read(&reader)
    case "binary_sensor": SensorEntity.readBinary(&reader)
    case "light": LightEntity.read(&reader)
    case "cover", "valve": CoverEntity.read(&reader)
    case "fan": FanEntity.read(&reader)
    case "climate", "water_heater": ClimateEntity.read(&reader)
    case "humidifier": ClimateEntity.readHumidifier(&reader)
    case "vacuum": VacuumEntity.read(&reader)
    case "switch": SingleValueEntity.readSwitch(&reader)
    case "number": SingleValueEntity.readNumber(&reader)
    case "select": SingleValueEntity.readSelect(&reader)
    case "text": SingleValueEntity.readText(&reader)
    case "lock": SingleValueEntity.readLock(&reader)
    case "siren": SingleValueEntity.readSiren(&reader)
    case "button":
      SingleValueEntity.readAction(&reader, "press", ("press", "payload_press", "PRESS"))
    case "scene":
      SingleValueEntity.readAction(&reader, "activate", ("activate", "payload_on", "ON"))
    case "alarm_control_panel":
      reader.report("an alarm system must not be debounced", .leftOut)
    default:
      reader.report("entities of the kind '\(Excerpt.of(platform))' are not supported", .leftOut)
    }
    if reader.properties.isEmpty, reader.diagnostics.isEmpty {
      reader.report("it has no topic on which something can be set or read", .leftOut)
    }
    let unused = reader.unusedTopics
    if !unused.isEmpty, !reader.properties.isEmpty {
      reader.report("not imported: \(unused.joined(separator: ", "))")
    }
    if reader.config["retain"] == true, !reader.properties.isEmpty {
      reader.report(
        "it asks for retained commands; Settle never retains one, so that none is replayed"
      )
    }
  }
}

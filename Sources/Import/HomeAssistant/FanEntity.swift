// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// Fans.
enum FanEntity {
  static func read(_ reader: inout EntityReader) {
    if reader.config["command_topic"] != nil, let power = reader.boolean("power") {
      var keys = TopicKeys()
      keys.stateTemplate = "state_value_template"
      reader.add(power, by: keys)
    }
    if reader.config["percentage_command_topic"] != nil {
      let speed = reader.number(
        "speed",
        low: ("speed_range_min", 1),
        high: ("speed_range_max", 100),
        step: Optional.none,
        unit: reader.number("speed_range_max") == nil ? "%" : Optional.none
      )
      if let speed { reader.add(speed, by: TopicKeys("percentage")) }
    }
    readPreset(&reader)
    if reader.config["oscillation_command_topic"] != nil {
      let swing = reader.boolean(
        "oscillation",
        on: "payload_oscillation_on",
        off: "payload_oscillation_off",
        standard: ("oscillate_on", "oscillate_off")
      )
      if let swing { reader.add(swing, by: TopicKeys("oscillation")) }
    }
    if reader.config["direction_command_topic"] != nil {
      var direction = ImportedProperty("direction", type: "choice")
      direction["values"] = ["forward", "reverse"]
      reader.add(direction, by: TopicKeys("direction"))
    }
  }

  static func readPreset(_ reader: inout EntityReader) {
    guard reader.config["preset_mode_command_topic"] != nil,
      let preset = reader.choice("preset", "preset_modes")
    else { return }
    reader.add(preset, by: TopicKeys("preset_mode"))
  }
}

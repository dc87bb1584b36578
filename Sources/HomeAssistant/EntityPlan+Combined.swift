// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

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

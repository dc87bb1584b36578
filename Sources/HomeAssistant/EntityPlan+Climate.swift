// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// Thermostats and air conditioners: one for each endpoint.
extension EntityPlan {
  /// The modes of Home Assistant's climate controls.
  private static let modes = ["auto", "off", "cool", "heat", "dry", "fan_only", "heat_cool"]

  /// What thermostats say of their work, in Home Assistant's words; others are none.
  private static let action = """
    {{ {'off': 'off', 'idle': 'idle', 'heat': 'heating', 'heating': 'heating', 'cool': 'cooling', \
    'cooling': 'cooling', 'dry': 'drying', 'drying': 'drying', 'fan_only': 'fan', 'fan': 'fan'}\
    .get(value, 'None') }}
    """

  private static let setPoints = [
    "target_temperature", "setpoint", "occupied_heating_setpoint", "current_heating_setpoint",
  ]
  private static let lower = ["target_temperature_low", "heating_setpoint"]
  private static let upper = [
    "occupied_cooling_setpoint", "target_temperature_high", "cooling_setpoint",
  ]

  /// Whether it is a thermostat.
  var hasSetPoint: Bool { find(Self.setPoints, where: Self.isNumber) != nil }

  mutating func addThermostats() {
    let all = endings(of: Self.setPoints) { !$0.isReadOnly && Self.isNumber($0.kind) }
    for ending in all where ending.isEmpty || isPart(ending) { addThermostat(ending) }
  }

  /// Whether an ending is that of an endpoint, which also has a temperature or a mode.
  private func isPart(_ ending: String) -> Bool {
    let names = Set(
      ["local_temperature", "mode", "system_mode", "running_state"].map { $0 + ending }
    )
    return device.properties.contains { $0.isCalled(names) }
  }

  private mutating func addThermostat(_ ending: String) {
    func named(_ names: [String]) -> [String] { names.map { $0 + ending } }
    let high = find(named(Self.upper), where: Self.isNumber)
    let low =
      find(named(Self.setPoints + Self.lower), where: Self.isNumber) ?? classed(ending, high)
    guard let main = low ?? high, let rule = main.kind.numberRule else { return }
    var fields: [JSONValue.Member] = []
    if let low, let high {
      fields += topics(low, "temperature_low_") + topics(high, "temperature_high_")
    } else {
      fields += topics(main, "temperature_")
    }
    let ranges = [low, high].compactMap { $0?.kind.numberRule?.range }
    fields += number("min_temp", ranges.map(\.lowerBound).min())
    fields += number("max_temp", ranges.map(\.upperBound).max())
    fields += number("temp_step", rule.step)
    fields.append(.init("temperature_unit", rule.unit?.hasSuffix("F") == true ? "F" : "C"))
    let mode = addMode(named(["mode", "system_mode"]), shownBy: main, &fields)
    let preset = find(named(["preset", "preset_mode"]), where: Self.isChoice)
    if let preset, let words = preset.kind.words {
      fields += topics(preset, "preset_mode_")
      // Home Assistant adds `none` by itself.
      fields.append(.init("preset_modes", Self.words(words.filter { $0 != "none" })))
    }
    var others: [Property?] = [mode, preset, low, high]
    for (name, list) in [("fan_mode", "fan_modes"), ("swing_mode", "swing_modes")] {
      guard let found = find(named([name]), where: Self.isChoice), let words = found.kind.words
      else { continue }
      fields += topics(found, "\(name)_")
      fields.append(.init(list, Self.words(words)))
      others.append(found)
    }
    addReadings(ending, &fields)
    fields.append(.init("optimistic", false))
    add("climate", main, titled: Self.title(ofEnding: ending), fields, using: others)
  }

  /// The set-point of a name that is not known, which the file calls a thermostat.
  private func classed(_ ending: String, _ high: Property?) -> Property? {
    guard ending.isEmpty, high == nil else { return nil }
    return device.properties.first {
      !used.contains($0.id) && Self.isNumber($0.kind) && device.entityClass(of: $0) == "thermostat"
    }
  }

  /// Adds the modes that Home Assistant knows; where there are others too, the mode is a select
  /// beside it.
  private func addMode(
    _ names: [String],
    shownBy main: Property,
    _ fields: inout [JSONValue.Member]
  ) -> Property? {
    let mode = find(names) { kind in
      Self.isChoice(kind) && kind.words?.contains(where: Self.modes.contains) == true
    }
    guard let mode, let words = mode.kind.words else {
      let shown = reading(Set(names)) { $0.words?.contains(where: Self.modes.contains) == true }
      if let shown {
        let known = shown.kind.words?.filter { Self.modes.contains($0) } ?? []
        fields += [.init("mode_state_topic", target(shown)), .init("modes", Self.words(known))]
        return nil
      }
      // A thermostat without modes always heats.
      fields += [
        .init("modes", ["heat"]), .init("mode_state_topic", target(main)),
        .init("mode_state_template", "heat"),
      ]
      return nil
    }
    let known = words.filter { Self.modes.contains($0) }
    fields += topics(mode, "mode_")
    fields.append(.init("modes", Self.words(known)))
    if known.count == words.count { return mode }
    let list = known.map { "'\($0)'" }.joined(separator: ", ")
    fields.append(
      .init("mode_state_template", .string("{{ value if value in [\(list)] else 'None' }}"))
    )
    return nil
  }

  private mutating func addReadings(_ ending: String, _ fields: inout [JSONValue.Member]) {
    func named(_ names: String...) -> Set<String> { Set(names.map { $0 + ending }) }
    let temperatures = named("local_temperature", "current_temperature", "temperature")
    if let current = reading(temperatures, where: Self.isNumber) {
      fields.append(.init("current_temperature_topic", target(current)))
      shown.insert(current.id)
    }
    if let humidity = reading(named("humidity", "current_humidity"), where: Self.isNumber) {
      fields.append(.init("current_humidity_topic", target(humidity)))
    }
    let action = reading(named("running_state", "hvac_action", "action")) {
      $0.words != nil || $0 == .text
    }
    guard let action, action.deviceClass != "remote" else { return }
    shown.insert(action.id)
    fields += [
      .init("action_topic", target(action)), .init("action_template", .string(Self.action)),
    ]
  }
}

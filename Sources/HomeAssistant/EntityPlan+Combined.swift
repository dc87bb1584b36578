// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// Entities of several properties, apart from lamps and thermostats.
extension EntityPlan {
  // MARK: - Fans

  /// The speeds of a fan in words, in order, as in `hvacFanCtrl` of the Zigbee specification.
  private static let speeds = [
    "low", "medium", "high", "1", "2", "3", "4", "5", "6", "7", "8", "9",
  ]

  mutating func addFan() {
    let switched = find(["fan_state"], where: Self.isBoolean)
    var mode = find(["fan_mode"], where: Self.isChoice)
    if switched == nil, let found = mode, device.entityClass(of: found) != "fan" { mode = nil }
    let power = switched ?? find(["power", "state", "on", "fan"], where: Self.isBoolean)
    if let mode { return addFan(of: mode, switchedBy: switched) }
    guard let power,
      let speed = find(["speed", "percentage", "fan_speed", "speed_level"], where: Self.isNumber)
    else { return }
    let range = speed.kind.numberRule?.range ?? 0...100
    var fields = topics(power) + Self.onAndOff
    // Home Assistant sends a speed of 0 to turn a fan off.
    let members = "'{\"\(power.id)\":false}' if value == 0 else '{\"\(speed.id)\":%s}' % value"
    fields += [
      .init("percentage_command_topic", commandOfAll),
      .init("percentage_command_template", .string("{{ \(members) }}")),
      .init("percentage_state_topic", target(speed)),
    ]
    fields += number("speed_range_min", max(1, range.lowerBound))
    fields += number("speed_range_max", max(2, range.upperBound))
    let preset = find(["mode", "preset", "preset_mode"], where: Self.isChoice)
    if let preset, case .choice(let words) = preset.kind {
      fields += topics(preset, "preset_mode_")
      fields.append(.init("preset_modes", Self.words(words)))
    }
    add("fan", power, titled: nil, fields, using: [speed, preset])
  }

  /// A fan whose speeds are words of a choice; without a switch of its own, `off` is one of them.
  private mutating func addFan(of mode: Property, switchedBy power: Property?) {
    guard case .choice(let words) = mode.kind else { return }
    let speeds = Self.speeds.filter { words.contains($0) }
    let presets = words.filter { !speeds.contains($0) && $0 != "off" }
    var fields: [JSONValue.Member]
    if let power {
      fields = topics(power) + Self.onAndOff
    } else {
      guard words.contains("off"), let on = (presets + speeds).first else { return }
      fields =
        topics(mode) + [
          .init("payload_on", .string(on)), .init("payload_off", "off"),
          .init("state_value_template", .string("{{ value if value == 'off' else '\(on)' }}")),
          .init("optimistic", false),
        ]
    }
    func quoted(_ words: [String]) -> String {
      words.map { "'\($0.replaced("'", by: "\\'"))'" }.joined(separator: ", ")
    }
    if !speeds.isEmpty {
      let off =
        power.map { "{\"\($0.id)\":false}" } ?? "{\"\(mode.id)\":\"off\"}"
      let commands = [off] + speeds.map { "{\"\(mode.id)\":\"\($0)\"}" }
      let known = ["off"] + speeds
      fields += [
        .init("percentage_command_topic", commandOfAll),
        .init(
          "percentage_command_template",
          .string("{{ [\(quoted(commands))][value | int] }}")
        ),
        .init("percentage_state_topic", target(mode)),
        .init(
          "percentage_value_template",
          .string(
            "{{ [\(quoted(known))].index(value) if value in [\(quoted(known))] else 'None' }}"
          )
        ),
        .init("speed_range_min", 1), .init("speed_range_max", .integer(Int64(speeds.count))),
      ]
    }
    if !presets.isEmpty {
      fields += topics(mode, "preset_mode_")
      fields += [
        .init("preset_modes", Self.words(presets)),
        .init(
          "preset_mode_value_template",
          .string("{{ value if value in [\(quoted(presets))] else 'None' }}")
        ),
      ]
    }
    add("fan", power ?? mode, titled: nil, fields, using: [mode])
  }

  // MARK: - Covers

  mutating func addCovers() {
    let stems = ["command", "state", "cover", "position"]
    let parts = endings(of: stems) { property in
      CoverPayloads(property) != nil
    }
    // Of a device without endpoints, an action of any name that also stops.
    let free = device.properties.filter { !used.contains($0.id) && $0.isAction }
    let others = free.compactMap { action in CoverPayloads(action).map { (action, $0) } }
    let other = parts.count == 1 ? others.first { $0.1.hasStop } : nil
    for ending in parts { addCover(ending, movedBy: movement(ending) ?? other) }
  }

  private mutating func addCover(_ ending: String, movedBy movement: (Property, CoverPayloads)?) {
    let position = find(["position\(ending)"], where: Self.isNumber)
    // The position of a radiator's valve is no cover.
    let isAlone = movement == nil && (!ending.isEmpty || hasSetPoint)
    guard let main = movement?.0 ?? position, !isAlone else { return }
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
    if let tilt = find(["tilt\(ending)", "slats\(ending)"], where: Self.isNumber) {
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
    fields += deviceClass(main, of: DeviceClass.covers)
    add("cover", main, titled: Self.title(ofEnding: ending), fields, using: [position])
  }

  /// What opens and closes a cover, by its name or class.
  ///
  /// A choice of directions, such as that of a motor, moves nothing.
  private func movement(_ ending: String) -> (Property, CoverPayloads)? {
    let names = Set(["command", "state", "cover", "movement", "control"].map { $0 + ending })
    let free = device.properties.filter { !used.contains($0.id) }
    for property in free {
      guard let payloads = CoverPayloads(property) else { continue }
      let isClassed =
        ending.isEmpty && DeviceClass.covers.contains(device.entityClass(of: property) ?? "")
      if property.isCalled(names) || isClassed { return (property, payloads) }
    }
    return nil
  }

  // MARK: - Sirens

  /// A siren is a boolean, or an action whose words are its tones and one that ends them.
  mutating func addSirens() {
    for property in device.properties
    where device.entityClass(of: property) == "siren" && !used.contains(property.id) {
      switch property.kind {
      case .boolean: addSiren(switchedBy: property)
      case .action(let words), .choice(let words): addSiren(of: property, words)
      case .number, .integer, .text, .color: continue
      }
    }
  }

  private mutating func addSiren(switchedBy power: Property) {
    let tone = find(["tone", "tones", "melody"]) { $0.words?.isEmpty == false }
    let duration = find(["duration"], where: Self.isNumber)
    let volume = find(["volume", "volume_level"], where: Self.isNumber)
    var fields: [JSONValue.Member] = [
      .init("command_topic", commandOfAll), .init("state_topic", target(power)),
      .init("state_on", "true"), .init("state_off", "false"), .init("optimistic", false),
    ]
    var members = "\"\(power.id)\": true"
    func part(_ property: Property, _ name: String, _ value: String) {
      members += "{% if \(name) is defined %}, \"\(property.id)\": \(value){% endif %}"
    }
    if let tone, let words = tone.kind.words {
      fields.append(.init("available_tones", Self.words(words)))
      part(tone, "tone", "{{ tone | tojson }}")
    }
    if let duration { part(duration, "duration", "{{ duration }}") }
    if let volume {
      let high = volume.kind.numberRule?.range?.upperBound ?? 1
      part(volume, "volume_level", "{{ (volume_level * \(NumberText.shortest(high))) | round(2) }}")
    }
    fields += [
      .init("support_duration", .boolean(duration != nil)),
      .init("support_volume_set", .boolean(volume != nil)),
      .init("command_template", .string("{\(members)}")),
      .init("command_off_template", .string("{\"\(power.id)\": false}")),
    ]
    add("siren", power, titled: nil, fields, using: [tone, duration, volume])
  }

  private mutating func addSiren(of property: Property, _ words: [String]) {
    guard let stop = words.first(where: { ["stop", "off"].contains($0.lowercased()) }),
      let first = words.first(where: { $0 != stop })
    else { return }
    let fields: [JSONValue.Member] = [
      .init("command_topic", command(property)),
      .init("available_tones", Self.words(words.filter { $0 != stop })),
      .init("support_duration", false), .init("support_volume_set", false),
      .init("command_template", .string("{{ tone | default('\(first)') }}")),
      .init("command_off_template", .string(stop)), .init("optimistic", true),
    ]
    add("siren", property, titled: nil, fields)
  }
}

/// The payloads with which a property opens, closes and stops a cover.
struct CoverPayloads {
  private let open: String
  private let close: String
  private let stop: String?

  var hasStop: Bool { stop != nil }

  /// `nil` unless the property has words that open and close a cover.
  init?(_ property: Property) {
    guard let words = property.kind.words else { return nil }
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

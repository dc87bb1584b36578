// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HomeAssistant
import JSON
import Testing

/// Entities that a class or several endpoints make.
@Suite struct ClassTests: AnnouncedDevices {
  /// The entities as `name: platform`, in the order of their names.
  private func platforms(_ properties: String) throws -> String {
    try entities("d:\n  properties:\n" + properties).sorted { $0.key < $1.key }
      .map { "\($0.key): \($0.value["p"]?.string ?? "")" }.joined(separator: ", ")
  }

  @Test(arguments: [
    ("    a: {class: siren, type: boolean, command: {topic: a}}", "a: siren"),
    ("    a: {class: valve, type: boolean, command: {topic: a}}", "a: valve"),
    ("    a: {class: fan, type: boolean, command: {topic: a}}", "a: fan"),
    ("    a: {class: outlet, type: boolean, command: {topic: a}}", "a: switch"),
    ("    a: {class: siren, type: action, values: [stop, fire], command: {topic: a}}", "a: siren"),
    ("    a: {class: siren, type: action, values: [fire], command: {topic: a}}", "a_fire: button"),
    ("    power: {class: lamp, type: boolean, command: {topic: a}}", "power: light"),
    ("    garden: {class: lamp, type: boolean, command: {topic: a}}", "garden: light"),
    ("    aim: {class: thermostat, type: number, command: {topic: a}}", "aim: climate"),
    ("    a: {class: shutter, type: choice, values: [up, down], command: {topic: a}}", "a: cover"),
    // A choice of directions is no cover.
    ("    direction: {type: choice, values: [up, down], command: {topic: a}}", "direction: select"),
    (
      "    motor: {type: action, values: [open, close], command: {topic: a}}",
      "motor_close: button, motor_open: button"
    ),
    ("    motor: {type: action, values: [open, close, stop], command: {topic: a}}", "motor: cover"),
    (
      "    fan_mode: {class: fan, type: choice, values: [\"off\", low, auto], command: {topic: a}}",
      "fan_mode: fan"
    ),
    (
      "    fan_mode: {class: fan, type: choice, values: [low, auto], command: {topic: a}}",
      "fan_mode: select"
    ),
    ("    a: {class: remote, type: choice, values: [x], state: {topic: s}}", "a: event"),
    ("    a: {type: choice, values: [x], state: {topic: s}}", "a: sensor"),
  ])
  func `a class chooses the entity`(properties: String, expected: String) throws {
    #expect(try platforms(properties) == expected)
  }

  @Test(arguments: [
    ("lamp", "light"), ("fan", "fan"), ("valve", "valve"), ("lock", "lock"), ("siren", "siren"),
    ("outlet", "switch"),
  ])
  func `the class of a device is that of its switch`(word: String, platform: String) throws {
    let text = """
      d:
        class: \(word)
        properties:
          power: {type: boolean, command: {topic: a}}
          child_lock: {type: boolean, command: {topic: a}}
      """
    let found = try entities(text)
    #expect(found.mapValues { $0["p"]?.string } == ["power": platform, "child_lock": "switch"])
    // That of any name, where it is all that can be set.
    let lines = text.replacing("power:", with: "main:").split(separator: "\n").dropLast()
    let main = try entities(lines.joined(separator: "\n"))["main"]
    #expect(main?["p"]?.string == platform && main?["name"] == .null)
  }

  @Test func `a button of a remote is an event of the device's own topic`() throws {
    let event = try #require(
      try entities(
        """
        d:
          properties:
            action: {class: remote, type: choice, values: [on, "hold 2"], \
        state: {topic: z/remote, value: /action}}
        """
      )["action"]
    )
    #expect(event["state_topic"] == "z/remote")
    #expect(event["event_types"] == ["on", "hold 2"])
    #expect(
      event["value_template"]?.string == #"{% set event = value_json["action"] | default('') %}"#
        + #"{% if event in ["on","hold 2"] %}{{ {'event_type': event} | tojson }}{% endif %}"#
    )
    #expect(event["entity_category"] == nil && event["device_class"] == nil)
  }

  @Test func `covers and thermostats of endpoints are entities of their own`() throws {
    let found = try entities(
      """
      d:
        properties:
          command_l1: {type: action, values: [OPEN, CLOSE, STOP], command: {topic: a}}
          position_l1: {type: integer, range: [0, 100], command: {topic: a}}
          tilt_l1: {type: integer, range: [0, 100], command: {topic: a}}
          command_l2: {type: action, values: [OPEN, CLOSE, STOP], command: {topic: a}}
          target_temperature_1: {type: number, range: [5, 30], command: {topic: a}}
          mode_1: {type: choice, values: ["off", heat], command: {topic: a}}
          local_temperature_1: {type: number, state: {topic: s}}
          target_temperature_limit: {type: number, range: [5, 30], command: {topic: a}}
      """
    )
    let shown = found.mapValues { "\($0["p"]?.string ?? "") \($0["name"]?.string ?? "-")" }
    #expect(
      shown == [
        "command_l1": "cover L1", "command_l2": "cover L2", "target_temperature_1": "climate 1",
        "target_temperature_limit": "number Target temperature limit",
      ]
    )
    #expect(found["command_l1"]?["tilt_command_topic"] == "settle/d/tilt_l1/set")
    #expect(found["target_temperature_1"]?["modes"] == ["off", "heat"])
    #expect(
      found["target_temperature_1"]?["current_temperature_topic"] == "settle/d/local_temperature_1"
    )
  }

  @Test func `a thermostat has two set-points, and a mode that Home Assistant knows`() throws {
    let found = try entities(
      """
      d:
        properties:
          target_temperature: {type: number, range: [5, 30], command: {topic: a}}
          occupied_cooling_setpoint: {type: number, range: [10, 35], command: {topic: a}}
          mode: {type: choice, values: ["off", heat, emergency_heating], command: {topic: a}}
          fan_mode: {type: choice, values: [auto, "on"], command: {topic: a}}
          swing_mode: {type: choice, values: ["on", "off"], command: {topic: a}}
          humidity: {type: number, unit: "%", state: {topic: s}}
      """
    )
    #expect(
      found.mapValues { $0["p"] } == [
        "target_temperature": "climate", "mode": "select", "humidity": "sensor",
      ]
    )
    let climate = try #require(found["target_temperature"])
    #expect(climate["temperature_low_command_topic"] == "settle/d/target_temperature/set")
    #expect(climate["temperature_high_state_topic"] == "settle/d/occupied_cooling_setpoint")
    #expect(climate["temperature_command_topic"] == nil)
    #expect(climate["min_temp"] == 5 && climate["max_temp"] == 35)
    #expect(climate["modes"] == ["off", "heat"])
    #expect(climate["mode_state_template"] == "{{ value if value in ['off', 'heat'] else 'None' }}")
    #expect(climate["fan_modes"] == ["auto", "on"] && climate["swing_modes"] == ["on", "off"])
    #expect(climate["current_humidity_topic"] == "settle/d/humidity")
  }

  @Test func `the speeds of a fan are words`() throws {
    let fan = try #require(
      try entities(
        """
        d:
          properties:
            fan_state: {type: boolean, command: {topic: a}}
            fan_mode: {type: choice, values: ["off", low, auto, high], command: {topic: a}}
        """
      )["fan_state"]
    )
    #expect(fan["speed_range_max"] == 2)
    #expect(fan["preset_modes"] == ["auto"])
    #expect(
      fan["percentage_command_template"]?.string == #"{{ ['{"fan_state":false}', "#
        + #"'{"fan_mode":"low"}', '{"fan_mode":"high"}'][value | int] }}"#
    )
    #expect(
      fan["percentage_value_template"]?.string
        == "{{ ['off', 'low', 'high'].index(value) if value in ['off', 'low', 'high'] else 'None' }}"
    )
  }

  @Test func `a siren has its tones, duration and volume`() throws {
    let siren = try #require(
      try entities(
        """
        d:
          properties:
            power: {class: siren, type: boolean, command: {topic: a}}
            tone: {type: choice, values: [bell, fire], command: {topic: b}}
            duration: {type: integer, range: [1, 60], command: {topic: c}}
            volume: {type: integer, range: [0, 100], command: {topic: d}}
        """
      )["power"]
    )
    #expect(siren["available_tones"] == ["bell", "fire"])
    #expect(siren["support_duration"] == true && siren["support_volume_set"] == true)
    #expect(siren["command_topic"] == "settle/d/set")
    #expect(siren["command_off_template"]?.string == #"{"power": false}"#)
    let command = try #require(siren["command_template"]?.string)
    #expect(
      command.hasPrefix(#"{"power": true{% if tone is defined %}, "tone": {{ tone | tojson }}"#)
    )
  }

  @Test(arguments: [
    ("range: [0, 254]", "slider"), ("range: [0, 43200]", "box"),
    ("range: [0, 10], step: 0.5", "slider"),
    ("range: [0, 10], step: 0.01", "box"), ("unit: s", "box"),
  ])
  func `a number is a box where a slider is of no use`(rule: String, mode: String) throws {
    let text = "d:\n  properties:\n    a: {type: integer, \(rule), command: {topic: a}}\n"
      .replacing("integer", with: rule.contains("0.") ? "number" : "integer")
    #expect(try entities(text)["a"]?["mode"]?.string == mode)
  }

  @Test func `classes and categories are announced where Home Assistant has them`() throws {
    let found = try entities(
      """
      d:
        properties:
          a: {class: outlet, type: boolean, command: {topic: a}}
          b: {class: temperature, type: number, unit: °C, category: config, command: {topic: a}}
          c: {class: temperature, type: number, unit: W, command: {topic: a}}
          e: {class: window, type: boolean, state: {topic: s}}
          f: {class: distance, type: number, unit: mm, category: config, state: {topic: s}}
          g: {class: restart, type: action, values: [go], command: {topic: a}}
      """
    )
    #expect(
      found.mapValues { $0["device_class"]?.string } == [
        "a": "outlet", "b": "temperature", "c": nil, "e": "window", "f": "distance",
        "g_go": "restart",
      ]
    )
    #expect(found["b"]?["entity_category"] == "config")
    #expect(found["f"]?["entity_category"] == "diagnostic")
  }

  @Test func `a lamp flashes by its effects, and says what it cannot do`() throws {
    let device = try #require(
      try devices(
        profile("zigbee2mqtt/light", "  properties:\n")
          + "    effect: {type: action, values: [blink, breathe], command: {topic: x}}\n"
      ).first
    )
    let light = try #require(Light.all(in: device).first)
    func asked(_ flash: JSONValue) -> JSONValue {
      .object(
        light.members(
          for: .object(["state": "ON", "flash": flash]),
          device.properties,
          options: [],
          last: nil
        )
      )
    }
    #expect(asked(2) == .object(["power": true, "effect": "blink"]))
    #expect(asked(10) == .object(["power": true, "effect": "breathe"]))
    let plain = try entities(profile("zigbee2mqtt/light"))["power"]
    #expect(plain?["flash"] == false && plain?["transition"] == true)
    let relay = try entities(profile("tasmota/dimmer"))["power"]
    #expect(relay?["transition"] == false)
  }

  @Test func `a group names the entities of its members`() throws {
    let all = try devices(
      """
      a: {properties: {power: {type: boolean, command: {topic: a}}}}
      b: {properties: {power: {type: boolean, command: {topic: b}}}}
      groups: {both: {members: [a, b]}}
      """
    )
    let group = try #require(all.first { $0.group != nil })
    let message = try #require(announcer().messages(for: group).first?.payload)
    #expect(message["cmps"]?["power"]?["group"] == ["settle_a_power", "settle_b_power"])
    let lamp = try #require(announcer().messages(for: all[0]).first?.payload)
    #expect(lamp["cmps"]?["power"]?["group"] == nil)
  }
}

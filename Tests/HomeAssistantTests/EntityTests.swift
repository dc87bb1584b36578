// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import FoundationEssentials
import HomeAssistant
import JSON
import Testing

/// The entities of a device's properties, and their announcements.
@Suite struct EntityTests: AnnouncedDevices {
  // MARK: - Which entity

  private static let platforms: [(String, [String: String])] = [
    ("zigbee2mqtt/light", ["power": "light"]),
    ("zigbee2mqtt/switch", ["power": "switch"]),
    ("zigbee2mqtt/cover", ["command": "cover"]),
    ("zigbee2mqtt/thermostat", ["target_temperature": "climate"]),
    ("tasmota/dimmer", ["power": "light"]),
    ("tasmota/relay", ["power": "switch"]),
    ("shelly/gen1-relay", ["power": "switch"]),
    ("wled/light", ["power": "light"]),
    ("zwave-js/thermostat", ["target_temperature": "climate"]),
    ("homeassistant/climate", ["target_temperature": "climate"]),
  ]

  @Test(arguments: platforms)
  func `a profile's properties make the expected entities`(
    _ profile: String,
    _ expected: [String: String]
  ) throws {
    let found = try entities(self.profile(profile))
    for (name, platform) in expected {
      #expect(found[name]?["p"]?.string == platform)
    }
  }

  @Test func `every property of every profile is announced`() throws {
    let all = try profileDevices()
    #expect(all.count >= 25)
    for device in all {
      let message = try #require(announcer().messages(for: device).first)
      let shown = JSONWriter.text(message.payload ?? .null)
      let lights = Light.all(in: device)
      for (place, property) in device.properties.enumerated() where !property.isReadOnly {
        let light = lights.first { $0.places.contains(place) }
        let topic = light.map { "\(device.properties[$0.main].id)/light" } ?? property.id
        // The speed of a fan is set together with its power.
        let isAnnounced =
          shown.contains("settle/lamp/\(topic)/set") || shown.contains(#"{\"\#(property.id)\":"#)
        #expect(isAnnounced, "\(property.id)")
      }
    }
  }

  // MARK: - Details

  @Test func `a light has its scale, its color modes and its white tones in mireds`() throws {
    let light = try #require(try entities(profile("zigbee2mqtt/light"))["power"])
    #expect(light["name"] == .null)
    #expect(light["schema"] == "json")
    #expect(light["command_topic"] == "settle/lamp/power/light/set")
    #expect(light["state_topic"] == "settle/lamp/power/light")
    #expect(light["brightness"] == true)
    #expect(light["brightness_scale"] == 254)
    #expect(light["supported_color_modes"] == ["color_temp", "xy"])
    #expect(light["min_mireds"] == 150)
    #expect(light["max_mireds"] == 500)
    #expect(light["optimistic"] == false)
    #expect(light["effect"] == nil)
  }

  @Test func `a light in kelvin is announced in mireds`() throws {
    let light = try #require(
      try entities(
        """
        lamp:
          properties:
            power: {type: boolean, command: {topic: a, payload: $value}}
            color_temp: {type: integer, range: [2000, 6500], step: 1, unit: K, \
        command: {topic: b, payload: $value}}
        """
      )["power"]
    )
    #expect(light["min_mireds"] == 154)
    #expect(light["max_mireds"] == 500)
  }

  private static let levels: [(String, JSONValue)] = [
    ("[0, 254]", 254), ("[10, 100]", 100), ("[0, 1]", 255), ("[0, 99.5]", 255),
  ]

  @Test(arguments: levels)
  func `a level that Home Assistant cannot represent is announced on its scale of 255`(
    _ range: String,
    _ expected: JSONValue
  ) throws {
    let light = try #require(
      try entities(
        """
        lamp:
          properties:
            power: {type: boolean, command: {topic: a}}
            level: {type: number, range: \(range), command: {topic: b}}
        """
      )["power"]
    )
    #expect(light["brightness_scale"] == expected)
  }

  @Test func `a white tone in percent is a number of its own`() throws {
    let found = try entities(
      """
      lamp:
        properties:
          power: {type: boolean, command: {topic: a}}
          brightness: {type: integer, range: [0, 100], command: {topic: b}}
          color_temp: {type: integer, range: [0, 100], unit: "%", command: {topic: c}}
      """
    )
    #expect(found["power"]?["supported_color_modes"] == ["brightness"])
    #expect(found["color_temp"]?["p"] == "number")
  }

  @Test func `slats open and close at the ends of their range`() throws {
    let cover = try #require(
      try entities(
        """
        blind:
          properties:
            position: {type: integer, range: [0, 100], command: {topic: a}}
            tilt: {type: integer, range: [-90, 90], command: {topic: b}}
        """
      )["position"]
    )
    for (name, value) in [
      ("tilt_min", -90), ("tilt_closed_value", -90), ("tilt_max", 90), ("tilt_opened_value", 90),
    ] {
      #expect(cover[name] == .integer(Int64(value)))
    }
  }

  @Test func `a cover opens, closes, stops, and moves to a position`() throws {
    let cover = try #require(try entities(profile("zigbee2mqtt/cover"))["command"])
    #expect(cover["command_topic"] == "settle/lamp/command/set")
    #expect(cover["payload_open"] == "OPEN")
    #expect(cover["payload_close"] == "CLOSE")
    #expect(cover["payload_stop"] == "STOP")
    #expect(cover["set_position_topic"] == "settle/lamp/position/set")
    #expect(cover["position_topic"] == "settle/lamp/position")
    #expect(cover["position_open"] == 100)
    #expect(cover["position_closed"] == 0)
  }

  @Test func `a position alone opens and closes by its bounds`() throws {
    let cover = try #require(
      try entities(
        """
        blind:
          properties:
            position: {type: integer, range: [0, 100], step: 1, \
        command: {topic: a, payload: $value}}
        """
      )["position"]
    )
    #expect(cover["p"] == "cover")
    #expect(cover["payload_open"] == "100")
    #expect(cover["payload_close"] == "0")
    #expect(cover["payload_stop"] == .null)
  }

  @Test func `a thermostat has its range and its modes`() throws {
    let climate = try #require(
      try entities(profile("zigbee2mqtt/thermostat"))["target_temperature"]
    )
    #expect(climate["temperature_command_topic"] == "settle/lamp/target_temperature/set")
    #expect(climate["min_temp"] == 5)
    #expect(climate["max_temp"] == 30)
    #expect(climate["temp_step"] == 0.5)
    #expect(climate["modes"] == ["off", "heat", "auto"])
    #expect(climate["mode_command_topic"] == "settle/lamp/mode/set")
  }

  @Test func `modes that Home Assistant does not know become a select`() throws {
    let found = try entities(
      """
      boiler:
        properties:
          target_temperature: {type: number, range: [5, 30], step: 0.5, unit: °F, \
      command: {topic: a, payload: $value}}
          mode: {type: choice, values: [party, away], command: {topic: b, payload: $value}}
      """
    )
    #expect(found["target_temperature"]?["modes"] == ["heat"])
    #expect(found["target_temperature"]?["temperature_unit"] == "F")
    #expect(found["mode"]?["p"] == "select")
    #expect(found["mode"]?["options"] == ["party", "away"])
  }

  @Test func `a fan has its speed, and is turned off by 0`() throws {
    let fan = try #require(
      try entities(profile("esphome/fan", "  parameters: {object: o}\n"))["power"]
    )
    #expect(fan["p"] == "fan")
    #expect(fan["percentage_command_topic"] == "settle/lamp/set")
    #expect(
      fan["percentage_command_template"]
        == #"{{ '{"power":false}' if value == 0 else '{"speed":%s}' % value }}"#
    )
    #expect(fan["speed_range_min"] == 1)
    #expect(fan["speed_range_max"] == 100)
  }

  @Test func `presets of a thermostat are without none, which Home Assistant adds`() throws {
    let climate = try #require(
      try entities(
        profile("zigbee2mqtt/thermostat", "  properties:\n")
          + "    preset: {type: choice, values: [none, eco, away], command: {topic: x}}\n"
      )["target_temperature"]
    )
    #expect(climate["preset_modes"] == ["eco", "away"])
    #expect(climate["preset_mode_command_topic"] == "settle/lamp/preset/set")
  }

  @Test func `a thermostat shows what it measures and does`() throws {
    let found = try entities(
      profile("zigbee2mqtt/thermostat", "  properties:\n")
        + "    local_temperature: {type: number, state: {topic: x, value: /local_temperature}}\n"
        + "    running_state: {type: text, state: {topic: x, value: /running_state}}\n"
    )
    let climate = try #require(found["target_temperature"])
    #expect(climate["current_temperature_topic"] == "settle/lamp/local_temperature")
    #expect(climate["action_topic"] == "settle/lamp/running_state")
    #expect(climate["action_template"]?.string?.contains("'heat': 'heating'") == true)
  }

  @Test func `a lock is a lock`() throws {
    let found = try entities(
      """
      door:
        properties:
          lock: {type: boolean, command: {topic: a}}
          child_lock: {type: boolean, on: LOCK, off: UNLOCK, command: {topic: b}}
          gate: {class: lock, type: boolean, command: {topic: d}}
          power: {type: boolean, command: {topic: c}}
      """
    )
    #expect(
      found.mapValues { $0["p"]?.string } == [
        "lock": "lock", "child_lock": "switch", "gate": "lock", "power": "switch",
      ]
    )
    #expect(found["lock"]?["payload_unlock"] == "false")
    #expect(found["child_lock"]?["entity_category"] == "config")
    #expect(found["lock"]?["entity_category"] == nil)
  }

  @Test func `what sets up a device is in the category for that`() throws {
    let lamp = try entities(
      profile("zigbee2mqtt/light", "  properties:\n")
        + "    motor_speed: {type: number, command: {topic: x}}\n"
        + "    power_on_behavior: {type: choice, values: [a], command: {topic: x}}\n"
        + "    power_2: {type: boolean, command: {topic: x}}\n"
    )
    #expect(
      lamp.mapValues { $0["entity_category"]?.string } == [
        "power": nil, "power_2": nil, "motor_speed": "config", "power_on_behavior": "config",
        "problem": "diagnostic",
      ]
    )
    let player = try entities(
      """
      player:
        properties:
          power: {type: boolean, command: {topic: a}}
          volume: {type: integer, range: [0, 100], command: {topic: b}}
          led_mode: {type: choice, values: [a], command: {topic: c}}
      """
    )
    #expect(
      player.mapValues { $0["entity_category"]?.string } == [
        "power": nil, "volume": nil, "led_mode": "config",
      ]
    )
  }

  @Test func `an action is a button for each word`() throws {
    let found = try entities(
      """
      door:
        properties:
          open: {type: action, values: [buzz], command: {topic: a, payload: $value}}
          bell: {type: action, values: [ring, "mute it"], command: {topic: b, payload: $value}}
          say: {type: text, command: {topic: c, payload: $value}}
      """
    )
    #expect(found["open_buzz"]?["p"] == "button")
    #expect(found["open_buzz"]?["payload_press"] == "buzz")
    #expect(found["bell_mute_it"]?["payload_press"] == "mute it")
    #expect(found["bell_mute_it"]?["unique_id"] == "settle_door_bell_mute_it")
    #expect(found["say"]?["p"] == "text")
  }

  @Test func `a number without a range is a box and its step has a minimum`() throws {
    let found = try entities(
      """
      thing:
        properties:
          free: {type: number, command: {topic: a, payload: $value}}
          fine: {type: number, range: [0, 1], step: 0.0001, command: {topic: b, payload: $value}}
      """
    )
    #expect(found["free"]?["mode"] == "box")
    #expect(found["fine"]?["step"] == 0.001)
  }

  @Test func `identifiers have only letters, digits, underscores and dashes`() throws {
    let device = try #require(
      try devices(
        "d_1:\n  properties:\n    x: {type: boolean, command: {topic: a, payload: $value}}\n"
      )
      .first
    )
    let payload = announcer(base: "haus/süd.1:x").messages(for: device).first?.payload
    #expect(payload?["cmps"]?["x"]?["unique_id"] == "haus_s_d_1_x_d_1_x")
  }
}

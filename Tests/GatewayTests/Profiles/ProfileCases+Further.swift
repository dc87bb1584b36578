// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Simulation

/// ESPHome, WLED, Z-Wave JS UI, Homie and Home Assistant-style topics.
extension ProfileCases {
  static var esphome: [ProfileCase] {
    func node(
      _ part: String,
      _ values: [String: JSONValue]
    ) -> @Sendable (String) -> any SimulatedDevice {
      { ESPHomeNode.device($0, parts: [part: values]) }
    }
    return [
      .number(
        "esphome/light",
        "esp/light",
        parameters: "{object: o}",
        id: "brightness",
        initial: "100",
        values: levels,
        to: "/light/o/command",
        payload: { #"{"state":"ON","brightness":\#($0)}"# },
        device: node("light/o", ESPHomeNode.light)
      )
      .with(power: "/light/o/command") { #"{"state":"\#(word($0))"}"# }
      .merging(
        #"{"power":false,"color_temp":250}"#,
        ["power", "color_temp"],
        to: "/light/o/command",
        #"{"state":"OFF","color_temp":250}"#
      ),
      .flag(
        "esphome/switch",
        "esp/switch",
        parameters: "{object: o}",
        to: "/switch/o/command",
        payload: word,
        device: node("switch/o", ESPHomeNode.relay)
      ),
      .number(
        "esphome/number",
        "esp/number",
        parameters: "{object: o}",
        fields: "range: [0, 100], step: 1",
        id: "value",
        initial: "20",
        values: levels,
        to: "/number/o/command",
        device: node("number/o", ["value": 20])
      ),
      .text(
        "esphome/select",
        "esp/select",
        parameters: "{object: o}",
        initial: "auto",
        values: [("eco", "eco"), ("boost", "boost"), ("away", "away")],
        to: "/select/o/command",
        device: node("select/o", ["value": "auto"])
      ),
      .cover(
        "esphome/cover",
        "esp/cover",
        parameters: "{object: o}",
        go: "/cover/o/position/command",
        stop: "/cover/o/command",
        stopped: "STOP",
        device: node("cover/o", ESPHomeNode.cover)
      ),
      .cover(
        "esphome/valve",
        "esp/valve",
        parameters: "{object: o}",
        go: "/valve/o/position/command",
        stop: "/valve/o/command",
        stopped: "STOP",
        device: node("valve/o", ESPHomeNode.cover)
      ),
      .flag(
        "esphome/lock",
        "esp/lock",
        parameters: "{object: o}",
        id: "lock",
        to: "/lock/o/command",
        payload: { $0 ? "LOCK" : "UNLOCK" },
        device: node("lock/o", ESPHomeNode.lock)
      ),
      .number(
        "esphome/climate",
        "esp/climate",
        parameters: "{object: o}",
        id: "target_temperature",
        initial: "20",
        values: setpoints,
        to: "/climate/o/target_temperature/command",
        device: node("climate/o", ESPHomeNode.climate)
      )
      .with(mode: "/climate/o/mode/command", payload: "off"),
      .number(
        "esphome/fan",
        "esp/fan",
        parameters: "{object: o}",
        id: "speed",
        initial: "1",
        values: ("3", ("1", "4"), "0", "2"),
        to: "/fan/o/speed_level/command",
        device: node("fan/o", ESPHomeNode.fan)
      )
      .with(power: "/fan/o/command", payload: word),
    ]
  }

  static var wled: [ProfileCase] {
    [
      .number(
        "wled/light",
        "wled/strip",
        id: "brightness",
        initial: "128",
        values: levels,
        to: "/api",
        payload: { #"{"bri":\#($0)}"# },
        device: { WLEDStrip.device($0) }
      )
      .with(power: "/api", phase: "sent") { #"{"on":\#($0)}"# }
    ]
  }

  static var zwaveJS: [ProfileCase] {
    zwaveJS(named: "", "zwave/") { "\($0)/0" }
      + zwaveJS(named: "named-", "zwave/kitchen/lamp-") {
        zwaveClasses[$0, default: ""] + "/endpoint_0"
      }
  }

  private static let zwaveClasses = [
    37: "switch_binary", 38: "switch_multilevel", 51: "color", 64: "thermostat_mode",
    67: "thermostat_setpoint",
  ]

  /// The cases of one form of topics; `part` gives the levels of a command class.
  private static func zwaveJS(
    named prefix: String,
    _ root: String,
    part: (Int) -> String
  ) -> [ProfileCase] {
    let (binary, level, color) = (part(37), part(38), part(51))
    let (setpoint, mode) = (part(67), part(64))
    return [
      .flag(
        "zwave-js/\(prefix)switch",
        "\(root)2",
        to: "/\(binary)/targetValue/set",
        payload: { $0 ? "true" : "false" },
        device: { ZWaveNode.device($0, isRaw: true, parts: [binary: ZWaveNode.binary]) }
      ),
      .number(
        "zwave-js/\(prefix)dimmer",
        "\(root)3",
        id: "brightness",
        initial: "20",
        values: levels,
        to: "/\(level)/targetValue/set",
        device: { ZWaveNode.device($0, parts: [level: ZWaveNode.level]) }
      )
      .with(power: "/\(level)/targetValue/set", phase: "sent") { $0 ? "255" : "0" },
      .text(
        "zwave-js/\(prefix)color-light",
        "\(root)6",
        id: "color",
        initial: nil,
        values: [
          ("\"#00ff00\"", #"{"value":{"red":0,"green":255,"blue":0}}"#),
          ("\"#0000ff\"", #"{"value":{"red":0,"green":0,"blue":255}}"#),
          ("\"#ff8800\"", #"{"value":{"red":255,"green":136,"blue":0}}"#),
        ],
        to: "/\(color)/targetColor/set",
        device: {
          ZWaveNode.device($0, parts: [level: ZWaveNode.level, color: ZWaveNode.color])
        }
      ),
      .number(
        "zwave-js/\(prefix)cover",
        "\(root)4",
        id: "position",
        initial: "20",
        values: levels,
        to: "/\(level)/targetValue/set",
        device: { ZWaveNode.device($0, isRaw: true, parts: [level: ZWaveNode.level]) }
      ),
      .number(
        "zwave-js/\(prefix)thermostat",
        "\(root)5",
        id: "target_temperature",
        initial: "20",
        values: setpoints,
        to: "/\(setpoint)/setpoint/1/set",
        device: {
          ZWaveNode.device($0, parts: [setpoint: ZWaveNode.setpoint, mode: ZWaveNode.mode])
        }
      )
      .with(mode: "/\(mode)/mode/set", payload: "0"),
    ]
  }

  static var homie: [ProfileCase] {
    func device(
      _ datatype: String,
      _ value: JSONValue
    ) -> @Sendable (String) -> any SimulatedDevice {
      { HomieDevice.device($0, properties: ["n/p": (datatype, value)]) }
    }
    let parameters = "{node: n, property: p}"
    return [
      .number(
        "homie/number",
        "homie/5/number",
        parameters: parameters,
        fields: "range: [0, 100], step: 1",
        id: "value",
        initial: "20",
        values: levels,
        to: "/n/p/set",
        device: device("float", 20)
      ),
      .flag(
        "homie/boolean",
        "homie/5/flag",
        parameters: parameters,
        id: "value",
        to: "/n/p/set",
        payload: { $0 ? "true" : "false" },
        device: device("boolean", "false")
      ),
      .text(
        "homie/text",
        "homie/5/text",
        parameters: parameters,
        initial: "auto",
        values: [("eco", "eco"), ("boost", "boost"), ("away", "away")],
        to: "/n/p/set",
        device: device("string", "auto")
      ),
      .text(
        "homie/color",
        "homie/5/color",
        parameters: parameters,
        initial: nil,
        values: [
          ("\"#00ff00\"", "rgb,0,255,0"), ("\"#0000ff\"", "rgb,0,0,255"),
          ("\"#ffffff\"", "rgb,255,255,255"),
        ],
        to: "/n/p/set",
        device: device("color", "rgb,255,0,0")
      ),
    ]
  }

  static var homeAssistant: [ProfileCase] {
    func thing(_ part: String) -> @Sendable (String) -> any SimulatedDevice {
      { HomeAssistantThing.device($0, part) }
    }
    return [
      .flag(
        "homeassistant/switch",
        "ha/switch",
        to: "/set",
        payload: word,
        device: thing("switch")
      ),
      .number(
        "homeassistant/light",
        "ha/light",
        id: "brightness",
        initial: "100",
        values: levels,
        to: "/brightness/set",
        device: thing("light")
      )
      .with(power: "/set", payload: word),
      .number(
        "homeassistant/light-json",
        "ha/light-json",
        id: "brightness",
        initial: "100",
        values: levels,
        to: "/set",
        payload: { #"{"state":"ON","brightness":\#($0)}"# },
        device: thing("light-json")
      )
      .with(power: "/set") { #"{"state":"\#(word($0))"}"# }
      .merging(
        #"{"power":false,"color_temp":250}"#,
        ["power", "color_temp"],
        to: "/set",
        #"{"state":"OFF","color_temp":250}"#
      ),
      .number(
        "homeassistant/number",
        "ha/number",
        fields: "range: [0, 100], step: 1",
        id: "value",
        initial: "20",
        values: levels,
        to: "/set",
        device: thing("number")
      ),
      .cover(
        "homeassistant/cover",
        "ha/cover",
        go: "/position/set",
        stop: "/set",
        stopped: "STOP",
        device: thing("cover")
      ),
      .number(
        "homeassistant/climate",
        "ha/climate",
        id: "target_temperature",
        initial: "20",
        values: setpoints,
        to: "/temperature/set",
        device: thing("climate")
      )
      .with(mode: "/mode/set", payload: "off"),
    ]
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Simulation

/// Every profile that ships, by its convention.
enum ProfileCases {
  static func all(_ convention: ConventionName) -> [ProfileCase] {
    switch convention {
    case .zigbee2mqtt: zigbee2mqtt
    case .tasmota: tasmota
    case .shellyGen1: shellyGen1
    case .shellyGen2: shellyGen2
    case .esphome: esphome
    case .wled: wled
    case .zwaveJS: zwaveJS
    case .homie: homie
    case .homeAssistant: homeAssistant
    }
  }

  private static let levels = (set: "40", step: (by: "5", to: "45"), urgent: "0", back: "60")
  private static let setpoints = (
    set: "21.5", step: (by: "0.5", to: "22"), urgent: "5", back: "23"
  )

  private static func last(_ topic: String) -> String {
    topic.split(separator: "/").last.map(String.init) ?? topic
  }

  private static func word(_ isOn: Bool) -> String { isOn ? "ON" : "OFF" }

  private static var zigbee2mqtt: [ProfileCase] {
    [
      .number(
        "zigbee2mqtt/light",
        "zigbee2mqtt/light",
        id: "brightness",
        initial: "100",
        values: levels,
        to: "/set",
        payload: { #"{"brightness":\#($0)}"# },
        device: { ZigbeeLamp(name: last($0)) }
      )
      .with(power: "/set") { #"{"state":"\#(word($0))"}"# }
      .merging(
        #"{"power":false,"brightness":77}"#,
        ["power", "brightness"],
        to: "/set",
        #"{"state":"OFF","brightness":77}"#
      ),
      .flag(
        "zigbee2mqtt/switch",
        "zigbee2mqtt/switch",
        to: "/set",
        payload: { #"{"state":"\#(word($0))"}"# },
        device: { ZigbeeLamp(name: last($0), isOn: false) }
      ),
      .cover(
        "zigbee2mqtt/cover",
        "zigbee2mqtt/cover",
        go: "/set",
        stop: "/set",
        stopped: #"{"state":"STOP"}"#,
        payload: { #"{"position":\#($0)}"# },
        device: { MovingCover(name: last($0)) }
      ),
      .number(
        "zigbee2mqtt/thermostat",
        "zigbee2mqtt/thermostat",
        id: "target_temperature",
        initial: "20",
        values: setpoints,
        to: "/set",
        payload: { #"{"occupied_heating_setpoint":\#($0)}"# },
        device: { ZigbeeThermostat.device(last($0)) }
      )
      .with(mode: "/set", payload: #"{"system_mode":"off"}"#)
      .merging(
        #"{"target_temperature":19,"mode":"heat"}"#,
        ["target_temperature", "mode"],
        to: "/set",
        #"{"occupied_heating_setpoint":19,"system_mode":"heat"}"#
      ),
    ]
  }

  private static var tasmota: [ProfileCase] {
    @Sendable func lamp(_ topic: String) -> any SimulatedDevice {
      TasmotaDimmer(name: topic, tellsState: true)
    }
    var relay = ProfileCase.flag(
      "tasmota/relay",
      "relay",
      to: "=cmnd/relay/POWER",
      payload: word,
      device: lamp
    )
    // It is on at the start.
    relay.set = relay.back
    relay.urgent.change = ProfileCase.Change(
      id: "power",
      text: "true",
      topic: "=cmnd/relay/POWER",
      payload: "ON"
    )
    relay.toggle = relay.back
    relay.back = relay.urgent.change
    relay.initial = "true"
    return [
      relay,
      .number(
        "tasmota/dimmer",
        "dimmer",
        id: "brightness",
        initial: "50",
        values: levels,
        to: "=cmnd/dimmer/Dimmer",
        device: lamp
      )
      .with(power: "=cmnd/dimmer/POWER", payload: word),
      .number(
        "tasmota/ct-light",
        "ct",
        id: "color_temp",
        initial: "",
        values: ("200", ("10", "210"), "0", "250"),
        to: "=cmnd/ct/CT",
        device: lamp
      )
      .with(power: "=cmnd/ct/POWER", payload: word),
      ProfileCase(
        profile: "tasmota/color-light",
        topic: "color",
        device: lamp,
        set: .init(
          id: "color",
          text: "#00ff00",
          topic: "=cmnd/color/HSBColor",
          payload: "120,100,100"
        ),
        step: .init(id: "brightness", text: "-10", topic: "=cmnd/color/Dimmer", payload: "90"),
        urgent: .init(
          change: .init(id: "power", text: "false", topic: "=cmnd/color/POWER", payload: "OFF"),
          isProfiles: false
        ),
        toggle: .init(id: "power", text: "", topic: "=cmnd/color/POWER", payload: "ON"),
        back: .init(
          id: "color",
          text: "#ff0000",
          topic: "=cmnd/color/HSBColor",
          payload: "0,100,100"
        )
      ),
      .cover(
        "tasmota/shutter",
        "shutter",
        go: "=cmnd/shutter/ShutterPosition1",
        stop: "=cmnd/shutter/ShutterPosition1",
        stopped: "STOP",
        device: { TasmotaShutter.device($0) }
      ),
    ]
  }

  private static var shellyGen1: [ProfileCase] {
    [
      .flag(
        "shelly/gen1-relay",
        "shellies/relay",
        to: "/relay/0/command",
        payload: { $0 ? "on" : "off" },
        device: { ShellyFirst.device($0, parts: ["relay/0": ShellyFirst.relay]) }
      ),
      .number(
        "shelly/gen1-light",
        "shellies/light",
        id: "brightness",
        initial: "40",
        values: ("60", ("5", "65"), "0", "50"),
        to: "/light/0/set",
        payload: { #"{"brightness":\#($0)}"# },
        device: { ShellyFirst.device($0, parts: ["light/0": ShellyFirst.light]) }
      )
      .with(power: "/light/0/set") { #"{"turn":"\#($0 ? "on" : "off")"}"# }
      .merging(
        #"{"power":false,"brightness":30}"#,
        ["power", "brightness"],
        to: "/light/0/set",
        #"{"turn":"off","brightness":30}"#
      ),
      .cover(
        "shelly/gen1-roller",
        "shellies/roller",
        go: "/roller/0/command/pos",
        stop: "/roller/0/command",
        stopped: "stop",
        device: { ShellyFirst.device($0, parts: ["roller/0": ShellyFirst.roller]) }
      ),
      .number(
        "shelly/gen1-trv",
        "shellies/trv",
        id: "target_temperature",
        initial: nil,
        values: setpoints,
        to: "/thermostat/0/command/target_t",
        phase: "sent",
        device: { ShellyFirst.device($0, parts: ["thermostat/0": ShellyFirst.thermostat]) }
      ),
    ]
  }

  private static var shellyGen2: [ProfileCase] {
    func call(_ method: String, _ params: String) -> String {
      #"{"id":1,"src":"settle","method":"\#(method)","params":{"id":0\#(params)}}"#
    }
    return [
      .flag(
        "shelly/gen2-switch",
        "plus1",
        to: "/rpc",
        payload: { call("Switch.Set", #","on":\#($0)"#) },
        device: { ShellyRPC.device($0, parts: ["switch:0": ShellyRPC.relay]) }
      ),
      .number(
        "shelly/gen2-light",
        "plusdimmer",
        id: "brightness",
        initial: "40",
        values: ("60", ("5", "65"), "0", "50"),
        to: "/rpc",
        payload: { call("Light.Set", #","brightness":\#($0)"#) },
        device: { ShellyRPC.device($0, parts: ["light:0": ShellyRPC.light]) }
      )
      .with(power: "/rpc") { call("Light.Set", #","on":\#($0)"#) }
      .merging(
        #"{"power":false,"brightness":30}"#,
        ["power", "brightness"],
        to: "/rpc",
        call("Light.Set", #","on":false,"brightness":30"#)
      ),
      .cover(
        "shelly/gen2-cover",
        "plus2pm",
        go: "/rpc",
        stop: "/rpc",
        stopped: call("Cover.Stop", ""),
        payload: { call("Cover.GoToPosition", #","pos":\#($0)"#) },
        device: { ShellyRPC.device($0, parts: ["cover:0": ShellyRPC.cover]) }
      ),
    ]
  }

  private static var esphome: [ProfileCase] {
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
        payload: { #"{"brightness":\#($0)}"# },
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

  private static var wled: [ProfileCase] {
    [
      .number(
        "wled/light",
        "wled/strip",
        id: "brightness",
        initial: "128",
        values: levels,
        to: "",
        device: { WLEDStrip.device($0) }
      )
      .with(power: "", phase: "sent", payload: word)
    ]
  }

  private static var zwaveJS: [ProfileCase] {
    [
      .flag(
        "zwave-js/switch",
        "zwave/2",
        to: "/37/0/targetValue/set",
        payload: { $0 ? "true" : "false" },
        device: { ZWaveNode.device($0, isRaw: true, parts: ["37/0": ZWaveNode.binary]) }
      ),
      .number(
        "zwave-js/dimmer",
        "zwave/3",
        id: "brightness",
        initial: "20",
        values: levels,
        to: "/38/0/targetValue/set",
        device: { ZWaveNode.device($0, parts: ["38/0": ZWaveNode.level]) }
      ),
      .number(
        "zwave-js/cover",
        "zwave/4",
        id: "position",
        initial: "20",
        values: levels,
        to: "/38/0/targetValue/set",
        device: { ZWaveNode.device($0, isRaw: true, parts: ["38/0": ZWaveNode.level]) }
      ),
      .number(
        "zwave-js/thermostat",
        "zwave/5",
        id: "target_temperature",
        initial: "20",
        values: setpoints,
        to: "/67/0/setpoint/1/set",
        device: { ZWaveNode.device($0, parts: ["67/0": ZWaveNode.setpoint]) }
      ),
    ]
  }

  private static var homie: [ProfileCase] {
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

  private static var homeAssistant: [ProfileCase] {
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
        payload: { #"{"brightness":\#($0)}"# },
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

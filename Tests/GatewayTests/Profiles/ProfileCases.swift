// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
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
    case .frigate: frigate
    case .evcc: evcc
    case .opendtu: opendtu
    case .victron: victron
    }
  }

  static let levels = (set: "40", step: (by: "5", to: "45"), urgent: "0", back: "60")
  static let setpoints = (
    set: "21.5", step: (by: "0.5", to: "22"), urgent: "5", back: "23"
  )

  private static func last(_ topic: String) -> String {
    topic.split(separator: "/").last.map(String.init) ?? topic
  }

  static func word(_ isOn: Bool) -> String { isOn ? "ON" : "OFF" }

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
      TasmotaDimmer(name: topic, reportsState: true)
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
        to: "=cmnd/dimmer/Json",
        payload: { #"{"Dimmer":\#($0)}"# },
        device: lamp
      )
      .with(power: "=cmnd/dimmer/Json") { #"{"POWER":"\#(word($0))"}"# }
      .merging(
        #"{"power":false,"brightness":30}"#,
        ["power", "brightness"],
        to: "=cmnd/dimmer/Json",
        #"{"Dimmer":30,"POWER":"OFF"}"#
      ),
      .number(
        "tasmota/ct-light",
        "ct",
        id: "color_temp",
        initial: "",
        values: ("200", ("10", "210"), "0", "250"),
        to: "=cmnd/ct/Json",
        payload: { #"{"CT":\#($0)}"# },
        device: lamp
      )
      .with(power: "=cmnd/ct/Json") { #"{"POWER":"\#(word($0))"}"# },
      ProfileCase(
        profile: "tasmota/color-light",
        topic: "color",
        device: lamp,
        set: .init(
          id: "color",
          text: "#00ff00",
          topic: "=cmnd/color/Json",
          payload: #"{"Color2":"0,255,0"}"#
        ),
        // A color keeps the brightness, which is 50.
        step: .init(
          id: "brightness",
          text: "-10",
          topic: "=cmnd/color/Json",
          payload: #"{"Dimmer":40}"#
        ),
        urgent: .init(
          change: .init(
            id: "power",
            text: "false",
            topic: "=cmnd/color/Json",
            payload: #"{"POWER":"OFF"}"#
          ),
          isProfiles: false
        ),
        toggle: .init(
          id: "power",
          text: "",
          topic: "=cmnd/color/Json",
          payload: #"{"POWER":"ON"}"#
        ),
        back: .init(
          id: "color",
          text: "#ff0000",
          topic: "=cmnd/color/Json",
          payload: #"{"Color2":"255,0,0"}"#
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
    func lamp(
      _ kind: String,
      at part: String,
      id: String = "brightness",
      initial: String = "40",
      values: (set: String, step: (by: String, to: String), urgent: String, back: String) = (
        "60", ("5", "65"), "0", "50"
      ),
      as state: [String: JSONValue] = ShellyFirst.color,
      payload: (String) -> String
    ) -> ProfileCase {
      .number(
        "shelly/gen1-\(kind)",
        "shellies/\(kind)",
        id: id,
        initial: initial,
        values: values,
        to: "/\(part)/set",
        payload: payload,
        device: { ShellyFirst.device($0, parts: [part: state]) }
      )
      .with(power: "/\(part)/set") { #"{"turn":"\#($0 ? "on" : "off")"}"# }
    }
    return [
      .flag(
        "shelly/gen1-relay",
        "shellies/relay",
        to: "/relay/0/command",
        payload: { $0 ? "on" : "off" },
        device: { ShellyFirst.device($0, parts: ["relay/0": ShellyFirst.relay]) }
      ),
      lamp("light", at: "light/0", as: ShellyFirst.light) { #"{"brightness":\#($0)}"# }
        .merging(
          #"{"power":false,"brightness":30}"#,
          ["power", "brightness"],
          to: "/light/0/set",
          #"{"turn":"off","brightness":30}"#
        ),
      lamp("white", at: "white/0", as: ShellyFirst.light) { #"{"brightness":\#($0)}"# },
      lamp("color", at: "color/0") { #"{"gain":\#($0)}"# }
        .merging(
          ##"{"power":false,"color":"#ff8800"}"##,
          ["power", "color"],
          to: "/color/0/set",
          #"{"turn":"off","red":255,"green":136,"blue":0}"#
        ),
      lamp(
        "bulb",
        at: "color/0",
        id: "color_temp",
        initial: "3000",
        values: ("4000", ("100", "4100"), "3000", "3500")
      ) { #"{"mode":"white","temp":\#($0)}"# }
      .merging(
        ##"{"power":false,"color":"#ff8800"}"##,
        ["power", "color"],
        to: "/color/0/set",
        #"{"turn":"off","mode":"color","red":255,"green":136,"blue":0}"#
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
      .number(
        "shelly/gen2-rgb",
        "plusrgb",
        id: "brightness",
        initial: "40",
        values: ("60", ("5", "65"), "0", "50"),
        to: "/rpc",
        payload: { call("RGB.Set", #","brightness":\#($0)"#) },
        device: { ShellyRPC.device($0, parts: ["rgb:0": ShellyRPC.colorLight]) }
      )
      .with(power: "/rpc") { call("RGB.Set", #","on":\#($0)"#) }
      .merging(
        ##"{"power":false,"color":"#ff8800"}"##,
        ["power", "color"],
        to: "/rpc",
        call("RGB.Set", #","on":false,"rgb":[255,136,0]"#)
      ),
      .number(
        "shelly/gen2-rgbw",
        "plusrgbw",
        id: "white",
        initial: "0",
        values: ("60", ("5", "65"), "0", "50"),
        to: "/rpc",
        payload: { call("RGBW.Set", #","white":\#($0)"#) },
        device: { ShellyRPC.device($0, parts: ["rgbw:0": ShellyRPC.whiteColorLight]) }
      )
      .with(power: "/rpc") { call("RGBW.Set", #","on":\#($0)"#) }
      .merging(
        ##"{"power":false,"color":"#ff8800"}"##,
        ["power", "color"],
        to: "/rpc",
        call("RGBW.Set", #","on":false,"rgb":[255,136,0]"#)
      ),
      .number(
        "shelly/gen2-cct",
        "pluscct",
        id: "color_temp",
        initial: "3000",
        values: ("4000", ("100", "4100"), "2700", "3500"),
        to: "/rpc",
        payload: { call("CCT.Set", #","ct":\#($0)"#) },
        device: { ShellyRPC.device($0, parts: ["cct:0": ShellyRPC.whiteLight]) }
      )
      .with(power: "/rpc") { call("CCT.Set", #","on":\#($0)"#) },
      .number(
        "shelly/gen2-thermostat",
        "walldisplay",
        id: "target_temperature",
        initial: "20",
        values: setpoints,
        to: "/rpc",
        payload: { target in
          #"{"id":1,"src":"settle","method":"Thermostat.SetConfig","params":{"config":{"id":0,"target_C":"#
            + target + "}}}"
        },
        device: { ShellyRPC.device($0, parts: ["thermostat:0": ShellyRPC.thermostat]) }
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
}

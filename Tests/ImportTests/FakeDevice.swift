// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Simulation
import Values

/// A device with the topics and payloads of one program's documentation.
struct FakeDevice: WireConvention {
  /// What a command sets; `nil` for one that the device does not understand.
  typealias Command = @Sendable (String) -> [String: JSONValue]?
  /// A message that reports the device's values.
  typealias Report = @Sendable ([String: JSONValue]) -> (topic: String, text: String)

  private static let part = "device"

  let commands: [String: Command]
  let reports: [Report]
  let names: [String]

  static func device(
    _ values: [String: JSONValue],
    commands: [String: Command],
    reports: [Report]
  ) -> ConventionalDevice<Self> {
    ConventionalDevice(
      Self(commands: commands, reports: reports, names: values.keys.sorted()),
      parts: [part: values]
    )
  }

  /// A value with a topic for commands and one for reports, with the same text.
  static func echo(_ name: String) -> Command { { [name: .string($0)] } }

  static func text(_ name: String, on topic: String) -> Report {
    { values in (topic, values[name]?.scalarText ?? "") }
  }

  static func object(_ text: String) -> JSONValue? { DeviceMessage(topic: "", text: text).object }

  var subscriptions: [String] { commands.keys.sorted() }

  func availability(_ isOnline: Bool) -> DeviceMessage? { nil }

  func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard let command = commands[message.topic] else { return nil }
    guard let values = command(message.text) else { return .refused() }
    return DeviceAnswer(values.map { DeviceChange(Self.part, $0.key, .set($0.value)) })
  }

  func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    let pairs = names.map { ($0, memory.value(Self.part, $0)) }
    let values = Dictionary(uniqueKeysWithValues: pairs)
    return reports.map { report in
      let (topic, text) = report(values)
      return DeviceMessage(topic: topic, text: text, retain: true)
    }
  }
}

// MARK: - Devices

extension FakeDevice {
  /// A lamp with OpenBeken: `led_basecolor_rgb` takes `#RRGGBB`, and is reported without `#`.
  static var openBekenLamp: ConventionalDevice<Self> {
    device(
      ["on": "0", "dimmer": "50", "color": "FFFFFF", "temperature": "154"],
      commands: [
        "cmnd/kommode/led_enableAll": echo("on"), "cmnd/kommode/led_dimmer": echo("dimmer"),
        "cmnd/kommode/led_temperature": echo("temperature"),
        "cmnd/kommode/led_basecolor_rgb": { text in
          text.hasPrefix("#") ? ["color": .string(text.dropFirst().uppercased())] : nil
        },
      ],
      reports: [
        text("on", on: "kommode/led_enableAll/get"), text("dimmer", on: "kommode/led_dimmer/get"),
        text("temperature", on: "kommode/led_temperature/get"),
        text("color", on: "kommode/led_basecolor_rgb/get"),
      ]
    )
  }

  /// Channels of a device with OpenBeken.
  static var openBekenHeater: ConventionalDevice<Self> {
    device(
      ["level": "0", "step": "0"],
      commands: ["heizer/14/set": echo("step"), "heizer/8/set": echo("level")],
      reports: [text("step", on: "heizer/14/get"), text("level", on: "heizer/8/get")]
    )
  }

  /// The settings of OpenMQTTGateway.
  static var gatewaySettings: ConventionalDevice<Self> {
    device(
      ["interval": 55_000, "disc": false, "rgbb": 128],
      commands: [
        "home/OMG/commands/MQTTtoBT/config": { members($0, ["interval"]) },
        "home/OMG/commands/MQTTtoSYS/config": { members($0, ["disc", "rgbb"]) },
      ],
      reports: [
        { json(["interval": $0["interval"]], on: "home/OMG/BTtoMQTT") },
        { json(["disc": $0["disc"], "rgbb": $0["rgbb"]], on: "home/OMG/SYStoMQTT") },
      ]
    )
  }

  /// A thermostat and a lamp behind zwave-js-ui, which maps words of Home Assistant to numbers.
  static var zWaveNodes: ConventionalDevice<Self> {
    let modes = ["off": 0, "heat": 1] as [String: JSONValue]
    return device(
      ["mode": 0, "color": .object(["red": 0, "green": 0, "blue": 0]), "level": 0],
      commands: [
        "zwave/Bad/thermostat_mode/endpoint_0/mode/set": { text in
          modes[text].map { ["mode": $0] }
        },
        "zwave/Bar/color/endpoint_0/targetColor/set": { text in
          object(text).map { ["color": $0] }
        },
        "zwave/Flur/Dimmer/switch_multilevel/endpoint_0/targetValue/set": { text in
          text == "OFF" ? ["level": 0] : Int64(text).map { ["level": .integer($0)] }
        },
      ],
      reports: [
        { json(["value": $0["mode"]], on: "zwave/Bad/thermostat_mode/endpoint_0/mode") },
        { json(["value": $0["color"]], on: "zwave/Bar/color/endpoint_0/currentColor") },
        {
          json(
            ["value": $0["level"]],
            on: "zwave/Flur/Dimmer/switch_multilevel/endpoint_0/currentValue"
          )
        },
      ]
    )
  }

  /// A heating circuit behind EMS-ESP, whose modes have other names than Home Assistant's.
  static var heatingCircuit: ConventionalDevice<Self> {
    let modes = ["heat": "day", "off": "night", "auto": "auto"] as [String: JSONValue]
    return device(
      ["seltemp": 20, "mode": "auto"],
      commands: [
        "ems-esp/thermostat/hc1/seltemp": { text in
          Double(text).map { ["seltemp": JSONValue(shortest: $0)] }
        },
        "ems-esp/thermostat/hc1/mode": { text in
          (modes[text] ?? (text == "night" ? "night" : nil)).map { ["mode": $0] }
        },
      ],
      reports: [
        { values in
          json(
            [
              "hc1": .object([
                .init("seltemp", values["seltemp"] ?? .null),
                .init("mode", values["mode"] ?? .null),
              ])
            ],
            on: "ems-esp/thermostat_data"
          )
        }
      ]
    )
  }

  /// A strip whose announcement has the schema `template`.
  static var strip: ConventionalDevice<Self> {
    device(
      [
        "state": "off", "brightness": 10, "color": .object(["r": 0, "g": 0, "b": 0]),
        "effect": "fire",
      ],
      commands: ["cmnd/oxrs": { members($0, ["state", "brightness", "color", "effect"]) }],
      reports: [
        { values in
          json(
            [
              "state": values["state"], "brightness": values["brightness"],
              "color": values["color"], "effect": values["effect"],
            ],
            on: "stat/oxrs"
          )
        }
      ]
    )
  }

  /// The members of a command that the device knows.
  private static func members(_ text: String, _ names: [String]) -> [String: JSONValue]? {
    guard let command = object(text) else { return nil }
    let pairs = names.compactMap { name in command[name].map { (name, $0) } }
    return Dictionary(uniqueKeysWithValues: pairs)
  }

  private static func json(
    _ members: KeyValuePairs<String, JSONValue?>,
    on topic: String
  ) -> (topic: String, text: String) {
    (topic, JSONWriter.text(.object(members.map { JSONValue.Member($0.key, $0.value ?? .null) })))
  }
}

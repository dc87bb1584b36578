// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
package import LastOut

/// The content of a demo: a device file, the simulated devices and a script.
package struct DemoHouse: Sendable {
  /// The device file.
  package var deviceFile: String
  package var devices: [any SimulatedDevice]
  package var script: DemoScript
  /// Example commands of `settle`, shown after the script with `--keep`.
  package var tries: [String]
  /// An example of a command topic and its payload, shown after the script with `--keep`.
  package var message: (topic: String, payload: String)

  /// The home of the demo without `--with`.
  package static var standard: DemoHouse {
    DemoHouse(
      deviceFile: DemoHome.deviceFile,
      devices: DemoHome.devices(),
      script: .standard,
      tries: [
        "set desk-lamp/brightness 200 --wait", "step boiler/target_temperature +0.5",
        "set hall-blind/position 90", "set hall-blind/command STOP",
      ],
      message: ("settle/desk-lamp/brightness/set", "40")
    )
  }

  /// A house whose devices all follow one convention.
  package static func with(_ convention: ConventionName) -> DemoHouse {
    switch convention {
    case .zigbee2mqtt: zigbee
    case .tasmota: tasmota
    case .shellyGen1: shellyGen1
    case .shellyGen2: shellyGen2
    case .esphome: esphome
    case .wled: wled
    case .zwaveJS: zwave
    case .homie: homie
    case .homeAssistant: homeAssistant
    case .frigate: frigate
    case .evcc: evcc
    case .opendtu: opendtu
    case .victron: victron
    }
  }
}

// MARK: - One house for each convention

extension DemoHouse {
  /// - Parameters:
  ///   - file: The device file.
  ///   - devices: The devices in the file.
  ///   - slider: The key that is dragged, with start and end.
  ///   - button: The key that is toggled three times.
  ///   - cover: The key that is set to 30, 50 and 20 within half a second.
  ///   - stepper: The key that is stepped up five times, with the amount.
  private init(
    _ file: String,
    _ devices: [any SimulatedDevice],
    slider: (key: String, from: Double, to: Double),
    button: String? = nil,
    cover: String? = nil,
    stepper: (key: String, amount: Double)? = nil
  ) {
    deviceFile = file
    self.devices = devices
    script = .short(slider: slider, button: button, cover: cover, stepper: stepper)
    tries = ["set \(slider.key) \(Int(slider.from)) --wait"]
    if let button { tries.append("toggle \(button)") }
    if let cover { tries.append("set \(cover) 40") }
    if let stepper { tries.append("step \(stepper.key) +\(stepper.amount)") }
    message = ("settle/\(slider.key)/set", "40")
  }

  private static var zigbee: DemoHouse {
    DemoHouse(
      """
      lamp: {profile: zigbee2mqtt/light, topic: zigbee2mqtt/lamp}
      blind: {profile: zigbee2mqtt/cover, topic: zigbee2mqtt/blind}
      valve: {profile: zigbee2mqtt/thermostat, topic: zigbee2mqtt/valve}

      """,
      [
        ZigbeeLamp(name: "lamp", brightness: 20), MovingCover(name: "blind"),
        ZigbeeThermostat.device("valve"),
      ],
      slider: ("lamp/brightness", 20, 200),
      button: "lamp/power",
      cover: "blind/position",
      stepper: ("valve/target_temperature", 0.5)
    )
  }

  private static var tasmota: DemoHouse {
    DemoHouse(
      """
      lamp: {profile: tasmota/color-light, topic: lamp}
      shutter: {profile: tasmota/shutter, topic: shutter}

      """,
      [TasmotaDimmer(name: "lamp", reportsState: true), TasmotaShutter.device("shutter")],
      slider: ("lamp/brightness", 50, 90),
      button: "lamp/power",
      cover: "shutter/position"
    )
  }

  private static var shellyGen1: DemoHouse {
    DemoHouse(
      """
      lamp: {profile: shelly/gen1-light, topic: shellies/shellydimmer-1}
      plug: {profile: shelly/gen1-relay, topic: shellies/shelly1-2}
      shutter: {profile: shelly/gen1-roller, topic: shellies/shellyswitch25-3}

      """,
      [
        ShellyFirst.device("shellies/shellydimmer-1", parts: ["light/0": ShellyFirst.light]),
        ShellyFirst.device("shellies/shelly1-2", parts: ["relay/0": ShellyFirst.relay]),
        ShellyFirst.device("shellies/shellyswitch25-3", parts: ["roller/0": ShellyFirst.roller]),
      ],
      slider: ("lamp/brightness", 40, 90),
      button: "plug/power",
      cover: "shutter/position"
    )
  }

  private static var shellyGen2: DemoHouse {
    DemoHouse(
      """
      lamp: {profile: shelly/gen2-light, topic: shellyplusdimmer-1}
      plug: {profile: shelly/gen2-switch, topic: shellyplus1-2}
      shutter: {profile: shelly/gen2-cover, topic: shellyplus2pm-3}

      """,
      [
        ShellyRPC.device("shellyplusdimmer-1", parts: ["light:0": ShellyRPC.light]),
        ShellyRPC.device("shellyplus1-2", parts: ["switch:0": ShellyRPC.relay]),
        ShellyRPC.device("shellyplus2pm-3", parts: ["cover:0": ShellyRPC.cover]),
      ],
      slider: ("lamp/brightness", 40, 90),
      button: "plug/power",
      cover: "shutter/position"
    )
  }

  private static var esphome: DemoHouse {
    DemoHouse(
      """
      lamp: {profile: esphome/light, topic: lamp, parameters: {object: ceiling}}
      blind: {profile: esphome/cover, topic: blind, parameters: {object: blind}}
      heater: {profile: esphome/climate, topic: heater, parameters: {object: room}}

      """,
      [
        ESPHomeNode.device("lamp", parts: ["light/ceiling": ESPHomeNode.light]),
        ESPHomeNode.device("blind", parts: ["cover/blind": ESPHomeNode.cover]),
        ESPHomeNode.device("heater", parts: ["climate/room": ESPHomeNode.climate]),
      ],
      slider: ("lamp/brightness", 100, 220),
      button: "lamp/power",
      cover: "blind/position",
      stepper: ("heater/target_temperature", 0.5)
    )
  }

  private static var wled: DemoHouse {
    DemoHouse(
      """
      strip: {profile: wled/light, topic: wled/a1b2c3}

      """,
      [WLEDStrip.device("wled/a1b2c3")],
      slider: ("strip/brightness", 128, 220)
    )
  }

  private static var frigate: DemoHouse {
    DemoHouse(
      """
      front-door: {profile: frigate/camera, topic: frigate/front_door}

      """,
      [ValueTopics.camera("frigate/front_door")],
      slider: ("front-door/motion_threshold", 30, 60),
      button: "front-door/detect"
    )
  }

  private static var evcc: DemoHouse {
    DemoHouse(
      """
      garage: {profile: evcc/loadpoint, topic: evcc/loadpoints/1}

      """,
      [ValueTopics.loadpoint("evcc/loadpoints/1")],
      slider: ("garage/limit_soc", 80, 60),
      stepper: ("garage/max_current", 1)
    )
  }

  private static var opendtu: DemoHouse {
    DemoHouse(
      """
      roof: {profile: opendtu/inverter, topic: solar/116180400144}

      """,
      [ValueTopics.inverter("solar/116180400144")],
      slider: ("roof/limit", 100, 40)
    )
  }

  private static var victron: DemoHouse {
    let path = "settings/0/Settings/CGwacs/AcPowerSetPoint"
    return DemoHouse(
      """
      grid:
        profile: victron/number
        topic: c0619ab1
        parameters: {path: \(path)}
        properties:
          value: {range: [-5000, 5000], step: 10, unit: W}

      """,
      [ValueTopics.victron("c0619ab1", path: path, initial: 50)],
      slider: ("grid/value", 50, 400)
    )
  }

  private static var zwave: DemoHouse {
    DemoHouse(
      """
      dimmer: {profile: zwave-js/dimmer, topic: zwave/5}
      plug: {profile: zwave-js/switch, topic: zwave/6}
      blind: {profile: zwave-js/cover, topic: zwave/7}
      valve: {profile: zwave-js/thermostat, topic: zwave/8}

      """,
      [
        ZWaveNode.device("zwave/5", parts: ["38/0": ZWaveNode.level]),
        ZWaveNode.device("zwave/6", isRaw: true, parts: ["37/0": ZWaveNode.binary]),
        ZWaveNode.device("zwave/7", parts: ["38/0": ZWaveNode.level]),
        ZWaveNode.device("zwave/8", parts: ["67/0": ZWaveNode.setpoint]),
      ],
      slider: ("dimmer/brightness", 20, 80),
      button: "plug/power",
      cover: "blind/position",
      stepper: ("valve/target_temperature", 0.5)
    )
  }

  private static var homie: DemoHouse {
    DemoHouse(
      """
      dimmer:
        profile: homie/number
        topic: homie/5/lamp
        parameters: {node: light, property: level}
        properties: {value: {range: [0, 100], step: 1}}
      switch:
        profile: homie/boolean
        topic: homie/5/lamp
        parameters: {node: light, property: on}

      """,
      [
        HomieDevice.device(
          "homie/5/lamp",
          properties: ["light/level": ("float", 20), "light/on": ("boolean", "true")]
        )
      ],
      slider: ("dimmer/value", 20, 80),
      button: "switch/value"
    )
  }

  private static var homeAssistant: DemoHouse {
    DemoHouse(
      """
      lamp: {profile: homeassistant/light-json, topic: home/lamp}
      plug: {profile: homeassistant/switch, topic: home/plug}
      blind: {profile: homeassistant/cover, topic: home/blind}
      heater: {profile: homeassistant/climate, topic: home/heater}

      """,
      [
        HomeAssistantThing.device("home/lamp", "light-json"),
        HomeAssistantThing.device("home/plug", "switch"),
        HomeAssistantThing.device("home/blind", "cover"),
        HomeAssistantThing.device("home/heater", "climate"),
      ],
      slider: ("lamp/brightness", 100, 220),
      button: "plug/power",
      cover: "blind/position",
      stepper: ("heater/target_temperature", 0.5)
    )
  }
}

/// The standard home of the demo: a device file and its four simulated devices.
package enum DemoHome {
  /// The device file.
  package static let deviceFile = """
    # The home of settle demo. Profiles bring topics, payloads and ranges.

    desk-lamp:
      name: Desk lamp
      profile: zigbee2mqtt/light
      topic: zigbee2mqtt/desk_lamp

    boiler:
      name: Boiler
      properties:
        target_temperature:
          type: number
          range: [5, 30]
          step: 0.5
          unit: °C
          policy: {delay: 800ms, max_wait: none}
          command: {topic: heating/boiler/set, payload: {setpoint: $value}}
          state: {topic: heating/boiler, value: /setpoint}
          confirm: {within: 5s, retries: 2}
      availability: {topic: heating/boiler/status, online: online, offline: offline}

    hall-blind:
      name: Hall blind
      profile: zigbee2mqtt/cover
      topic: zigbee2mqtt/hall_blind

    porch-light:
      name: Porch light
      profile: tasmota/dimmer
      topic: porch
      properties:
        brightness: {policy: live}

    """

  /// The settings file, for a broker and a panel on the given loopback ports.
  package static func settingsFile(port: Int, panel: Int, socket: String) -> String {
    """
    mqtt: {url: "mqtt://127.0.0.1:\(port)"}
    http: {listen: ["127.0.0.1:\(panel)"]}
    socket: \(socket)
    devices: .

    """
  }

  /// The simulated devices.
  package static func devices() -> [any SimulatedDevice] {
    [
      ZigbeeLamp(name: "desk_lamp", brightness: 20),
      SlowThermostat(topic: "heating/boiler", setpoint: 20),
      MovingCover(name: "hall_blind"),
      TasmotaDimmer(name: "porch"),
    ]
  }
}

/// A radiator thermostat that cannot keep up: it loses commands that arrive close together.
///
/// After accepting a command it is busy for ``busyTime`` and ignores further commands. The new
/// set-point takes effect and is reported after ``confirmDelay``. Flooding such a device leaves it
/// at a value that is not the last one.
package struct SlowThermostat: SimulatedDevice {
  package static let busyTime = Duration.milliseconds(600)
  package static let confirmDelay = Duration.milliseconds(1000)

  package let topic: String
  package private(set) var setpoint: Double
  package private(set) var tally = CommandTally()

  private var busyUntil = Moment.zero
  /// The accepted set-point that is not yet in effect.
  private var accepted: (value: Double, effective: Moment)?

  package init(topic: String, setpoint: Double = 20) {
    self.topic = topic
    self.setpoint = setpoint
  }

  package var subscriptions: [String] { ["\(topic)/set"] }

  package var nextWake: Moment? { accepted?.effective }

  package var will: [DeviceMessage] {
    [DeviceMessage(topic: "\(topic)/status", text: "offline", retain: true)]
  }

  package mutating func start(at now: Moment) -> [DeviceMessage] {
    [DeviceMessage(topic: "\(topic)/status", text: "online", retain: true), report()]
  }

  package mutating func receive(_ message: DeviceMessage, at now: Moment) -> [DeviceMessage] {
    tally.received += 1
    guard now >= busyUntil else {
      tally.dropped += 1
      return []
    }
    guard let value = message.object?["setpoint"]?.double, (5...30).contains(value) else {
      tally.refused += 1
      return []
    }
    // An accepted command takes effect before the next one is accepted.
    let early = wake(at: now)
    busyUntil = now.advanced(by: Self.busyTime)
    accepted = (value, now.advanced(by: Self.confirmDelay))
    return early
  }

  package mutating func wake(at now: Moment) -> [DeviceMessage] {
    guard let next = accepted, next.effective <= now else { return [] }
    accepted = nil
    setpoint = next.value
    return [report()]
  }

  private func report() -> DeviceMessage {
    DeviceMessage(
      topic: topic,
      json: .object(["setpoint": .number(setpoint), "temperature": 20.5]),
      retain: true
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

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

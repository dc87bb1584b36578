// Settle
// SPDX-License-Identifier: Apache-2.0

/// The home that the demo plays in: four devices as files describe them, and as they behave.
package enum DemoHome {
  /// The device file, as somebody would write it.
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

  /// The settings file for a broker and a panel on loopback ports.
  package static func settingsFile(port: Int, panel: Int, socket: String) -> String {
    """
    mqtt: {url: "mqtt://127.0.0.1:\(port)"}
    http: {listen: ["127.0.0.1:\(panel)"]}
    socket: \(socket)
    devices: .

    """
  }

  /// The same four, as they behave.
  package static func devices() -> [any SimulatedDevice] {
    [
      ZigbeeLamp(name: "desk_lamp", brightness: 20),
      SlowThermostat(topic: "heating/boiler", setpoint: 20),
      MovingCover(name: "hall_blind"),
      TasmotaDimmer(name: "porch"),
    ]
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON

/// A radiator valve behind Zigbee2MQTT, with its attributes in one JSON object.
package struct ZigbeeThermostat: WireConvention {
  private static let part = "valve"

  package let topic: String

  /// Creates a device called `name` below Zigbee2MQTT's default base topic.
  package static func device(_ name: String) -> ConventionalDevice<Self> {
    ConventionalDevice(
      Self(topic: "zigbee2mqtt/\(name)"),
      parts: [part: ["occupied_heating_setpoint": 20, "system_mode": "heat"]]
    )
  }

  package var subscriptions: [String] { ["\(topic)/set", "\(topic)/get"] }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    .zigbeeAvailability(topic, isOnline: isOnline)
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    if message.topic == "\(topic)/get" { return DeviceAnswer(queriedParts: [Self.part]) }
    guard let command = message.object else { return .refused() }
    var changes: [DeviceChange] = []
    if let asked = command["occupied_heating_setpoint"], let value = asked.double,
      (5...30).contains(value)
    {
      changes.append(DeviceChange(Self.part, "occupied_heating_setpoint", .set(asked)))
    }
    if let mode = command["system_mode"], ["off", "heat", "auto"].contains(mode.string) {
      changes.append(DeviceChange(Self.part, "system_mode", .set(mode)))
    }
    return changes.isEmpty ? .refused() : DeviceAnswer(changes)
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    let names = ["occupied_heating_setpoint", "system_mode"]
    let members = memory.members(part, names)
    let temperature = JSONValue.Member("local_temperature", 19.5)
    return [DeviceMessage(topic: topic, json: .object(members + [temperature]), retain: true)]
  }
}

/// A Tasmota shutter: `ShutterPosition1` in; position, direction and target in `RESULT` as it
/// moves.
package struct TasmotaShutter: WireConvention {
  private static let part = "shutter"
  package static let fullTravel = Duration.seconds(4)

  package let name: String

  package static func device(_ name: String, position: Int64 = 0) -> ConventionalDevice<Self> {
    ConventionalDevice(
      Self(name: name),
      parts: [part: ["position": .integer(position), "target": .integer(position)]]
    )
  }

  package var subscriptions: [String] { ["cmnd/\(name)/+"] }

  package func availability(_ isOnline: Bool) -> DeviceMessage? {
    DeviceMessage(topic: "tele/\(name)/LWT", text: isOnline ? "Online" : "Offline", retain: true)
  }

  package func answer(to message: DeviceMessage, memory: DeviceMemory) -> DeviceAnswer? {
    guard message.topic.lowercased().hasSuffix("/shutterposition1") else {
      return .refused([
        DeviceMessage(topic: "stat/\(name)/RESULT", json: .object(["Command": "Unknown"]))
      ])
    }
    // An empty payload is a query.
    if message.payload.isEmpty { return DeviceAnswer(queriedParts: [Self.part]) }
    let target: Double
    switch message.text.uppercased() {
    case "OPEN": target = 100
    case "CLOSE": target = 0
    case "STOP":
      return DeviceAnswer([
        DeviceChange(Self.part, "position", .stop),
        DeviceChange(Self.part, "target", .set(memory.value(Self.part, "position"))),
      ])
    default:
      guard let asked = message.number, (0...100).contains(asked) else {
        return .refused([
          DeviceMessage(topic: "stat/\(name)/RESULT", json: .object(["Command": "Error"]))
        ])
      }
      target = asked
    }
    return DeviceAnswer([
      DeviceChange(Self.part, "position", .travel(to: target, whole: Self.fullTravel)),
      DeviceChange(Self.part, "target", .set(.integer(Int64(target)))),
    ])
  }

  package func report(of part: String, memory: DeviceMemory) -> [DeviceMessage] {
    let position = memory.number(part, "position")
    let target = memory.number(part, "target")
    let direction: JSONValue = memory.isMoving(part) ? (target > position ? 1 : -1) : 0
    return [
      DeviceMessage(
        topic: "stat/\(name)/RESULT",
        json: .object([
          "Shutter1": .object([
            "Position": memory.value(part, "position"), "Direction": direction,
            "Target": memory.value(part, "target"),
          ])
        ])
      )
    ]
  }
}

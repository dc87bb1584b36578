// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
internal import JSON
package import LastOut

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

  package func answer(
    topic received: String,
    payload: [UInt8],
    memory: DeviceMemory,
    at now: Moment
  ) -> DeviceAnswer? {
    if received == "\(topic)/get" { return DeviceAnswer(queriedParts: [Self.part]) }
    guard let command = WirePayload.object(payload) else { return .refused() }
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

  package func report(of part: String, memory: DeviceMemory, at now: Moment) -> [DeviceMessage] {
    let names = ["occupied_heating_setpoint", "system_mode"]
    let members = names.map { JSONValue.Member($0, memory.value(part, $0, at: now)) }
    let temperature = JSONValue.Member("local_temperature", 19.5)
    return [DeviceMessage(topic: topic, json: .object(members + [temperature]), retain: true)]
  }
}

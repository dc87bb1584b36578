// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON

/// A message that a simulated device publishes.
package struct DeviceMessage: Hashable, Sendable {
  package var topic: String
  package var payload: [UInt8]
  package var retain: Bool

  package init(topic: String, payload: [UInt8], retain: Bool = false) {
    self.topic = topic
    self.payload = payload
    self.retain = retain
  }

  package init(topic: String, text: String, retain: Bool = false) {
    self.init(topic: topic, payload: Array(text.utf8), retain: retain)
  }

  package init(topic: String, json: JSONValue, retain: Bool = false) {
    self.init(topic: topic, payload: JSONWriter.bytes(json), retain: retain)
  }

  /// The availability of a device behind Zigbee2MQTT.
  static func zigbeeAvailability(_ topic: String, isOnline: Bool) -> DeviceMessage {
    DeviceMessage(
      topic: "\(topic)/availability",
      json: .object(["state": isOnline ? "online" : "offline"]),
      retain: true
    )
  }

  /// The payload as text, for display.
  package var text: String { String(decoding: payload, as: UTF8.self) }
}

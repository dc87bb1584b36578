// Settle
// SPDX-License-Identifier: Apache-2.0

/// How a command reaches the device.
package struct CommandRoad: Hashable, Sendable {
  package var topic: String
  package var payload: PayloadTemplate
  /// 0, 1 or 2.
  package var qos: Int

  package init(topic: String, payload: PayloadTemplate, qos: Int = 1) {
    self.topic = topic
    self.payload = payload
    self.qos = qos
  }
}

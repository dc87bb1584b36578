// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Gateway
import LastOut
import MQTT

/// Messages at the gateway's broker: each part of the input is a topic, a line feed and a payload.
enum MQTTTarget {
  static let run: @Sendable ([UInt8]) -> Void = { bytes in
    FuzzGateway.with { host in
      for part in Parts.of(bytes) {
        let (topic, payload) = Parts.head(part)
        let message = InboundMessage(flags: .init(qos: 1, retained: false))
        host.mqtt.receive(topic.span, payload.span, message, from: 0)
      }
    }
  }
}

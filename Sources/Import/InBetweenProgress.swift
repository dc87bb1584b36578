// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
import Values

/// How far Zigbee2MQTT has moved behind Settle, by what the broker retains.
package struct InBetweenProgress: Sendable {
  private let inner: String
  private let prefix: String

  /// `inner` is the new base topic of Zigbee2MQTT, `prefix` that of Home Assistant's discovery.
  package init(inner: String, prefix: String) {
    self.inner = inner
    self.prefix = prefix
  }

  /// The topic that exists once Zigbee2MQTT has moved.
  package var bridgeTopic: String { "\(inner)/bridge/state" }

  /// The topic filters of what Zigbee2MQTT announces to Home Assistant, before and after Settle.
  package var filters: [String] {
    [InBetween.announcements(of: inner), prefix].flatMap {
      ["\($0)/+/+/config", "\($0)/+/+/+/config"]
    }
  }

  /// Whether Zigbee2MQTT has moved.
  package func hasMoved(_ retained: [Announcement]) -> Bool {
    retained.last { $0.topic == bridgeTopic }.map { !$0.payload.isEmpty } ?? false
  }

  /// What works and what is missing, once Zigbee2MQTT has moved from `base`.
  package func text(_ retained: [Announcement], base: String) -> String {
    let own = InBetween.announcements(of: inner)
    let topics = Set(retained.filter { !$0.payload.isEmpty }.map(\.topic))
    let announced = topics.filter { $0.hasPrefix("\(own)/") }
    // Groups and the bridge have their old topics, which name the base topic.
    let (old, new) = (Zigbee2MQTTReader.encoded(base), Zigbee2MQTTReader.encoded(inner))
    let carried = announced.count { topic in
      let rest = topic.dropFirst(own.count)
      return topics.contains(prefix + rest.replaced("/\(new)_", by: "/\(old)_"))
    }
    let isOffline = retained.last { $0.topic == bridgeTopic }.map(Self.isOffline) ?? false
    let first = "Zigbee2MQTT has moved to \(inner)" + (isOffline ? ", and is offline." : ".")
    if announced.isEmpty {
      return """
        \(first) It announces nothing to \(own) yet.
        If it announces devices to Home Assistant, change in its configuration.yaml, and restart it:
          homeassistant:
            discovery_topic: \(own)
            status_topic: \(prefix)/status
        """
    }
    let words = announced.count == 1 ? "1 announcement" : "\(announced.count) announcements"
    guard carried < announced.count else {
      return "\(first) Its \(words) to Home Assistant: all carried from \(own) to \(prefix)."
    }
    return """
      \(first) Of its \(words) to Home Assistant, \(announced.count - carried) are not carried \
      from \(own) to \(prefix).
      Restart the gateway: it reads routes only when it starts.
      """
  }

  private static func isOffline(_ bridge: Announcement) -> Bool {
    guard case .success(let json) = bridge.json() else { return false }
    return json["state"] == "offline"
  }
}

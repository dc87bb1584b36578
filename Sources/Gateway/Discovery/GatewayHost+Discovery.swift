// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import HomeAssistant
import JSON
import LastOut
import MQTT
import MQTTTopics
import Routing

/// Home Assistant hears of every device: on each connection, when it has started, and when the
/// devices were read anew.
extension GatewayHost {
  /// Announces every device.
  func announceAll() {
    announcements?.announce(registry.deviceNumbers)
  }

  /// Announces what is other than before; what is gone is taken back.
  func announceChanges(since old: Registry) {
    guard announcements != nil else { return }
    let changed = registry.devices.indices.filter { number in
      number >= old.devices.count || old.devices[number] != registry.devices[number]
    }
    announcements?.announce(changed)
  }

  /// Hands announcements to the broker while there is room.
  func publishAnnouncements() {
    while announcements?.isEmpty == false, links[0].client.canPublish {
      let next = announcements?.next(registry) { core.commands.isDeviceOnline($0) }
      guard let message = next else { return }
      let isTaken = links[0].send(
        .init(
          topic: message.topic,
          payload: message.payload.map(Self.bytes) ?? [],
          retain: true
        )
      )
      if !isTaken {
        announcements?.putBack(message)
        return
      }
      announcements?.left(as: links[0].ownToken)
    }
  }

  private static func bytes(_ payload: JSONValue) -> [UInt8] {
    var bytes: [UInt8] = []
    payload.appendBare(to: &bytes)
    return bytes
  }

  /// Hears Home Assistant's start, and what the broker keeps of earlier announcements.
  ///
  /// - Returns: Whether the message was about either.
  func receivedFromHomeAssistant(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage
  ) -> Bool {
    guard let announcer = announcements?.announcer, announcer.mayMean(topic) else { return false }
    let name = Text.of(topic)
    if name == announcer.birthTopic {
      // One that the broker kept comes with the connection, when all are announced anyway.
      if !message.flags.retained, Bytes.areEqual(payload, Array("online".utf8)) { announceAll() }
      return true
    }
    guard announcer.filters.contains(where: { Topic.matches(filter: $0, name: name) }) else {
      return false
    }
    if message.flags.retained, !payload.isEmpty {
      announcements?.found(name, StatePayload.read(payload))
    }
    return true
  }
}

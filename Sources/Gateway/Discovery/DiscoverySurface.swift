// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import GatewayCore
import HomeAssistant
import JSON
import LastOut
import MQTT
import Routing
import Values

/// Announces devices to Home Assistant: on each connection, when it starts, and after a reload.
final class DiscoverySurface {
  let announcer: DiscoveryAnnouncer
  private var announcements: Announcements
  private let context: GatewayContext
  private let link: BrokerLink

  init(_ announcer: DiscoveryAnnouncer, _ context: GatewayContext, link: BrokerLink) {
    self.announcer = announcer
    self.context = context
    self.link = link
    announcements = Announcements(announcer)
  }

  /// A connection was made: announces every device.
  func connected() {
    announcements.connected()
    announceAll()
  }

  /// Announces devices again, and removes the announcements of those that a reload has removed.
  ///
  /// In a cluster each member announces the devices that it drives.
  func announce(_ devices: [Int]) {
    guard let places = context.places else { return announcements.announce(devices) }
    announcements.announce(devices.filter { places.drives(device: $0) })
  }

  /// A device came online or went offline.
  func availabilityChanged(of device: Int) { announcements.availabilityChanged(of: device) }

  /// The commands of a device have got on.
  func commandsChanged(of device: Int) { announcements.problemChanged(of: device) }

  /// What is wrong with the commands of a device: the last one that failed or expired and that no
  /// newer one of its key follows.
  private func problem(ofDevice device: Int) -> JSONValue {
    var newest: (at: Moment, key: KeyIndex)?
    for place in context.registry.indices(ofDevice: device) {
      let status = context.core.status(KeyIndex(place))
      guard status.phase == .failed || status.phase == .expired, let at = status.since,
        newest.map({ $0.at <= at }) ?? true
      else { continue }
      newest = (at, KeyIndex(place))
    }
    guard let newest else {
      return .object(["state": "off", "key": .null, "value": .null, "reason": .null])
    }
    let command = context.history.entries(of: newest.key).last {
      $0.phase == .failed || $0.phase == .expired
    }
    return .object([
      "state": "on", "key": .string(context.registry[newest.key].key),
      "value": command?.value ?? .null, "reason": command?.reason.map { .string($0) } ?? .null,
    ])
  }

  /// The broker has acknowledged one of the gateway's own messages.
  func acknowledged(_ token: UInt64) { announcements.acknowledged(token) }

  /// Publishes announcements while there is room.
  func publishWaiting() {
    while !announcements.isEmpty, link.client.canPublish {
      let next = announcements.next(context.registry) {
        context.core.isOnline(device: $0)
      } problem: {
        problem(ofDevice: $0)
      }
      guard let message = next else { return }
      let isAccepted = link.send(
        .init(
          topic: message.topic,
          payload: message.payload.map(Self.bytes) ?? [],
          retain: true
        )
      )
      guard isAccepted else { return announcements.putBack(message) }
      announcements.sent(as: link.ownToken)
    }
  }

  /// Receives Home Assistant's birth message, and announcements that the broker has retained.
  ///
  /// - Returns: Whether the message was one of these.
  func receive(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    _ message: borrowing InboundMessage
  ) -> Bool {
    guard announcer.matchesPrefix(topic) else { return false }
    let name = Text.of(topic)
    if name == announcer.birthTopic {
      // A retained one arrives with the connection, on which every device is announced anyway.
      if !message.flags.retained, Bytes.areEqual(payload, Array("online".utf8)) { announceAll() }
      return true
    }
    guard announcer.filters.contains(where: { Topic.matches(filter: $0, name: name) }) else {
      return false
    }
    if message.flags.retained, !payload.isEmpty {
      announcements.found(name, StatePayload.read(payload))
    }
    return true
  }

  private func announceAll() { announce(context.registry.deviceNumbers) }

  private static func bytes(_ payload: JSONValue) -> [UInt8] {
    var bytes: [UInt8] = []
    payload.appendBare(to: &bytes)
    return bytes
  }
}

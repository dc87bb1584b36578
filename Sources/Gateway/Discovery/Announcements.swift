// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HomeAssistant
import JSON

/// Which devices are still to be announced to Home Assistant, and what is announced.
///
/// One device is put into words at a time, when there is room at the broker. Whether devices are
/// there is told after the announcements have landed: by then the broker has said what it keeps of
/// the devices, so that none seems to come back when only the gateway did.
struct Announcements {
  typealias Message = DiscoveryAnnouncer.Message

  let announcer: DiscoveryAnnouncer
  /// Devices to be announced, by number; the last comes first.
  private var devices: [Int] = []
  private var isListed: [Bool] = []
  /// What is to be sent before another device is looked at; the last comes first.
  private var messages: [Message] = []
  /// The topics that each device was announced on.
  private var topics: [[String]] = []
  /// The topics of all devices, with the device's number.
  private var known: [String: Int] = [:]
  /// The entities of messages for whole devices, by topic, those that were taken back included.
  private var entities: [String: [String: String]] = [:]
  /// Own announcements that the broker has kept from earlier.
  private var strays: [String] = []
  /// Devices of which is to be told whether they are there; the last comes first.
  private var changed: [Int] = []
  private var isChanged: [Bool] = []
  /// Whether what was sent first on this connection has landed.
  private var hasLanded = false
  /// The last of what was sent first on this connection.
  private var lastToken: UInt64?

  init(_ announcer: DiscoveryAnnouncer) { self.announcer = announcer }

  var isEmpty: Bool { hasNothingToAnnounce && changed.isEmpty }

  private var hasNothingToAnnounce: Bool {
    messages.isEmpty && devices.isEmpty && strays.isEmpty
  }

  /// There is a new connection, on which nothing was sent.
  mutating func connected() {
    hasLanded = false
    lastToken = nil
  }

  /// Announces these devices, again if they were before.
  mutating func announce(_ numbers: some BidirectionalCollection<Int>) {
    let count = (numbers.max() ?? -1) + 1
    while topics.count < count {
      topics.append([])
      isListed.append(false)
      isChanged.append(false)
    }
    for number in numbers.reversed() {
      cameOrWent(number)
      if isListed[number] { continue }
      isListed[number] = true
      devices.append(number)
    }
  }

  /// A device is there again, or no more; told only once it is announced.
  mutating func cameOrWent(_ number: Int) {
    guard number < isChanged.count, !isChanged[number] else { return }
    isChanged[number] = true
    changed.append(number)
  }

  /// What ``next(_:isOnline:)`` gave last is on its way.
  mutating func left(as token: UInt64) { if !hasLanded { lastToken = token } }

  /// The broker has something of the gateway's own.
  mutating func landed(_ token: UInt64) {
    if token == lastToken, hasNothingToAnnounce { hasLanded = true }
  }

  /// The broker keeps this announcement; what nobody announces any more is to be removed.
  mutating func found(_ topic: String, _ announcement: JSONValue) {
    guard announcer.isOwn(announcement) else { return }
    let earlier = DiscoveryAnnouncer.entities(in: announcement)
    let count = entities[topic, default: [:]].count
    entities[topic, default: [:]].merge(earlier) { now, _ in now }
    if let number = known[topic] {
      // It was put into words before it was known what is to be taken back.
      if entities[topic, default: [:]].count > count { announce(CollectionOfOne(number)) }
      return
    }
    strays.append(topic)
    if let more = announcer.availabilityTopic(in: announcement) { strays.append(more) }
  }

  /// The next message, to be given back with ``putBack(_:)`` if there is no room for it.
  ///
  /// `isOnline` tells whether the device of a number is there.
  mutating func next(_ registry: Registry, isOnline: (Int) -> Bool) -> Message? {
    while messages.isEmpty, let number = devices.popLast() {
      isListed[number] = false
      let device = registry.devices[number]
      let wanted = messages(for: device)
      let status = announcer.availability(of: device, isOnline: true)
      let names = wanted.isEmpty ? [] : wanted.map(\.topic) + (status.map { [$0.topic] } ?? [])
      let gone = topics[number].filter { !names.contains($0) }
      for name in gone { known[name] = nil }
      for name in names { known[name] = number }
      topics[number] = names
      messages = (gone.map(Self.removal) + wanted).reversed()
    }
    if messages.isEmpty, !strays.isEmpty {
      messages = strays.filter { known[$0] == nil }.map(Self.removal)
      strays = []
    }
    if let message = messages.popLast() { return message }
    while hasLanded, let number = changed.popLast() {
      isChanged[number] = false
      guard !topics[number].isEmpty else { continue }
      let status = announcer.availability(
        of: registry.devices[number],
        isOnline: isOnline(number)
      )
      if let status { return status }
    }
    return nil
  }

  private mutating func messages(for device: Device) -> [Message] {
    let earlier = entities[announcer.topic(ofDevice: device.id)] ?? [:]
    let wanted = announcer.messages(for: device, replacing: earlier)
    for message in wanted {
      let named = DiscoveryAnnouncer.entities(in: message.payload)
      if !named.isEmpty { entities[message.topic] = named }
    }
    return wanted
  }

  mutating func putBack(_ message: Message) { messages.append(message) }

  private static func removal(_ topic: String) -> Message { Message(topic: topic, payload: nil) }
}

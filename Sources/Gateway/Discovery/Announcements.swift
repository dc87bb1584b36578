// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HomeAssistant

/// Which devices are still to be announced to Home Assistant, and what is announced.
///
/// One device is put into words at a time, when there is room at the broker.
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
  private var known: Set<String> = []
  /// Own announcements that the broker has kept from earlier.
  private var strays: [String] = []

  init(_ announcer: DiscoveryAnnouncer) { self.announcer = announcer }

  var isEmpty: Bool { messages.isEmpty && devices.isEmpty && strays.isEmpty }

  /// Announces these devices, again if they were before.
  mutating func announce(_ numbers: some BidirectionalCollection<Int>) {
    let count = (numbers.max() ?? -1) + 1
    while topics.count < count {
      topics.append([])
      isListed.append(false)
    }
    for number in numbers.reversed() where !isListed[number] {
      isListed[number] = true
      devices.append(number)
    }
  }

  /// The broker keeps this announcement; what nobody announces any more is to be removed.
  mutating func found(_ topic: String, _ announcement: JSONValue) {
    guard !known.contains(topic), announcer.isOwn(announcement) else { return }
    strays.append(topic)
  }

  /// The next message, to be given back with ``putBack(_:)`` if there is no room for it.
  mutating func next(_ registry: Registry) -> Message? {
    while messages.isEmpty, let number = devices.popLast() {
      isListed[number] = false
      let device = registry.devices[number]
      let wanted = announcer.messages(for: device)
      let names = wanted.map(\.topic)
      let gone = topics[number].filter { !names.contains($0) }
      known.subtract(gone)
      known.formUnion(names)
      topics[number] = names
      messages = (gone.map(Self.removal) + wanted).reversed()
    }
    if messages.isEmpty, !strays.isEmpty {
      messages = strays.filter { !known.contains($0) }.map(Self.removal)
      strays = []
    }
    return messages.popLast()
  }

  mutating func putBack(_ message: Message) { messages.append(message) }

  private static func removal(_ topic: String) -> Message { Message(topic: topic, payload: nil) }
}

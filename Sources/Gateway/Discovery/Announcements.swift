// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import HomeAssistant
import JSON

/// Decides what to announce to Home Assistant next.
///
/// Messages are made for one device at a time, when the broker has room. Availability follows once
/// the announcements are acknowledged: by then the broker has sent the retained states, so that no
/// device seems to come online when only the gateway did.
struct Announcements {
  typealias Message = DiscoveryAnnouncer.Message

  private let announcer: DiscoveryAnnouncer
  /// Devices to announce, by number, last one first.
  private var devices: [Int] = []
  private var isListed: [Bool] = []
  /// Messages to send before those of another device, last one first.
  private var messages: [Message] = []
  /// The topics on which each device was announced.
  private var topics: [[String]] = []
  /// The topics of all devices, with the device's number.
  private var known: [String: Int] = [:]
  /// The entities of messages for whole devices, by topic, removed ones included.
  private var entities: [String: [String: String]] = [:]
  /// Own announcements of an earlier process that the broker has retained.
  private var strays: [String] = []
  /// Devices whose availability must be published, last one first.
  private var changed: [Int] = []
  private var isChanged: [Bool] = []
  /// Where it is shown whether commands of a device fail, the devices of which that may have to be
  /// shown, and what is shown.
  private var problemTopics: [Int: String] = [:]
  private var troubled: [Int] = []
  private var isTroubled: Set<Int> = []
  private var problems: [Int: JSONValue] = [:]
  /// Whether the broker has acknowledged the first announcements of this connection.
  private var isAcknowledged = false
  /// The last of the first announcements of this connection.
  private var lastToken: UInt64?

  init(_ announcer: DiscoveryAnnouncer) { self.announcer = announcer }

  var isEmpty: Bool { hasNothingToAnnounce && changed.isEmpty && troubled.isEmpty }

  private var hasNothingToAnnounce: Bool {
    messages.isEmpty && devices.isEmpty && strays.isEmpty
  }

  /// A connection was made, on which nothing was sent yet.
  mutating func connected() {
    isAcknowledged = false
    lastToken = nil
    problems = [:]
  }

  /// Announces these devices, again if they were announced before.
  mutating func announce(_ numbers: some BidirectionalCollection<Int>) {
    let count = (numbers.max() ?? -1) + 1
    while topics.count < count {
      topics.append([])
      isListed.append(false)
      isChanged.append(false)
    }
    for number in numbers.reversed() {
      availabilityChanged(of: number)
      if isListed[number] { continue }
      isListed[number] = true
      devices.append(number)
    }
  }

  /// A device came online or went offline; this is published only once it is announced.
  mutating func availabilityChanged(of number: Int) {
    guard number < isChanged.count, !isChanged[number] else { return }
    isChanged[number] = true
    changed.append(number)
  }

  /// Commands of a device have failed, or no longer.
  mutating func problemChanged(of number: Int) {
    guard problemTopics[number] != nil, isTroubled.insert(number).inserted else { return }
    troubled.append(number)
  }

  /// The message of ``next(_:isOnline:problem:)`` was sent as `token`.
  mutating func sent(as token: UInt64) { if !isAcknowledged { lastToken = token } }

  /// The broker has acknowledged one of the gateway's own messages.
  mutating func acknowledged(_ token: UInt64) {
    if token == lastToken, hasNothingToAnnounce { isAcknowledged = true }
  }

  /// The broker has retained this announcement; it is removed unless a device has it.
  mutating func found(_ topic: String, _ announcement: JSONValue) {
    guard announcer.isOwn(announcement) else { return }
    let earlier = DiscoveryAnnouncer.entities(in: announcement)
    let now = entities[topic, default: [:]]
    entities[topic] = now.merging(earlier) { _, earlier in earlier }
    if let number = known[topic] {
      // Its message was made before these entities, which it must remove, were known.
      if entities[topic] != now { announce(CollectionOfOne(number)) }
      return
    }
    strays.append(topic)
    if let more = announcer.availabilityTopic(in: announcement) { strays.append(more) }
    strays += announcer.stateTopics(in: announcement)
  }

  /// The next message; return it with ``putBack(_:)`` when there is no room for it.
  ///
  /// `isOnline` says whether the device of a number is online, `problem` what is wrong with its
  /// commands.
  mutating func next(
    _ registry: Registry,
    isOnline: (Int) -> Bool,
    problem: (Int) -> JSONValue
  ) -> Message? {
    while messages.isEmpty, let number = devices.popLast() {
      isListed[number] = false
      let device = registry.devices[number]
      let wanted = messages(for: device)
      let status = announcer.availability(of: device, isOnline: true)
      problemTopics[number] = wanted.isEmpty ? nil : announcer.problemTopic(of: device)
      problems[number] = nil
      problemChanged(of: number)
      let names =
        wanted.isEmpty
        ? []
        : wanted.map(\.topic) + (status.map { [$0.topic] } ?? [])
          + announcer.lightTopics(of: device)
          + (problemTopics[number].map { [$0] } ?? [])
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
    while isAcknowledged, let number = changed.popLast() {
      isChanged[number] = false
      guard !topics[number].isEmpty else { continue }
      let status = announcer.availability(
        of: registry.devices[number],
        isOnline: isOnline(number)
      )
      if let status { return status }
    }
    while isAcknowledged, let number = troubled.popLast() {
      isTroubled.remove(number)
      guard let topic = problemTopics[number] else { continue }
      let payload = problem(number)
      if problems[number] == payload { continue }
      problems[number] = payload
      return Message(topic: topic, payload: payload)
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

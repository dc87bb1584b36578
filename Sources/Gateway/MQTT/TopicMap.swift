// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import HomeAssistant
import LastOut
import MQTT
import MQTTTopics
import Routing

/// The gateway's topics: their names, their roles, and the subscriptions they need.
///
/// Immutable; a reload makes another one.
final class TopicMap {
  let status: String
  /// Requests for the states of devices, sent on each connection, each once.
  let stateRequests: [StateRequest]
  /// The name of this gateway on the trail of a routed message.
  let routeName: String
  private let ownRouteProperties: PublishProperties
  private let base: String
  private let routes: [RouteConfiguration]
  private let stateTopics: [String]
  private let inputTopics: [String]
  private let announcer: DiscoveryAnnouncer?
  private let table: TopicTable
  /// Inputs whose topic has wildcards, by their number.
  private let wildInputs: [(filter: String, number: Int)]

  /// `announcer` names the topics of Home Assistant, with discovery.
  init(
    configuration: GatewayConfiguration,
    registry: Registry,
    announcer: DiscoveryAnnouncer?
  ) {
    base = configuration.baseTopic
    self.announcer = announcer
    routes = configuration.routes
    status = "\(base)/status"
    routeName = String("\(HostName.current)/\(base)".map { $0 == " " ? "_" : $0 })
    ownRouteProperties = Self.routeProperties(routeName)
    var table = TopicTable()
    var wildInputs: [(filter: String, number: Int)] = []
    var requests: [StateRequest] = []
    var states: [String] = []
    for (place, entry) in registry.properties.enumerated() where !entry.isRetired {
      let key = KeyIndex(Int32(place))
      Self.addCommands(key, named: entry, of: registry, base: base, to: &table)
      for (number, source) in entry.property.states.enumerated() {
        table.add(.state(key, source: number), for: source.topic)
        states.append(source.topic)
        if let get = source.get { requests.append(get) }
      }
    }
    for number in registry.deviceNumbers {
      let device = registry.devices[number]
      table.add(.command(.deviceSet(number)), for: "\(base)/\(device.id)/set")
      table.add(.deviceGet(number), for: "\(base)/\(device.id)/get")
      for (place, source) in device.availability.enumerated() {
        table.add(.availability(device: number, source: place), for: source.topic)
        states.append(source.topic)
      }
    }
    for (number, input) in configuration.inputs.enumerated() {
      if Topic.hasWildcard(input.topic) {
        wildInputs.append((input.topic, number))
      } else {
        table.add(.command(.input(number)), for: input.topic)
      }
    }
    table.add(.status, for: status)
    self.table = table
    self.wildInputs = wildInputs
    stateRequests = Self.unique(requests)
    stateTopics = Self.unique(states)
    inputTopics = Self.unique(configuration.inputs.map(\.topic))
  }

  /// The user property that names the gateways that a routed message has passed.
  static let routeMark = "settle-route"

  /// Marks a routed message, so that this gateway recognises it when it returns.
  func routeProperties(trail: String) -> PublishProperties {
    trail.isEmpty
      ? ownRouteProperties : Self.routeProperties(RouteTrail.joined(trail, routeName))
  }

  private static func routeProperties(_ trail: String) -> PublishProperties {
    var properties = PublishProperties()
    properties.userProperties[routeMark] = trail
    return properties
  }

  private static func addCommands(
    _ key: KeyIndex,
    named entry: Registry.Entry,
    of registry: Registry,
    base: String,
    to topics: inout TopicTable
  ) {
    let device = registry.devices[entry.device].id
    for name in [entry.property.id] + entry.property.aliases {
      let topic = "\(base)/\(device)/\(name)"
      topics.add(.command(.set(key)), for: "\(topic)/set")
      topics.add(.command(.step(key)), for: "\(topic)/step")
      topics.add(.command(.toggle(key)), for: "\(topic)/toggle")
      topics.add(.command(.flush(key)), for: "\(topic)/flush")
      topics.add(.command(.cancel(key)), for: "\(topic)/cancel")
    }
  }

  private static func unique<Item: Hashable>(_ items: [Item]) -> [Item] {
    var seen: Set<Item> = []
    return items.filter { seen.insert($0).inserted }
  }

  /// The roles of a topic; empty for one that has none.
  func roles(of topic: Span<UInt8>) -> [TopicTable.Role] {
    let roles = table.roles(of: topic)
    guard !wildInputs.isEmpty else { return roles }
    let name = Text.of(topic)
    return roles
      + wildInputs.filter { Topic.matches(filter: $0.filter, name: name) }.map {
        .command(.input($0.number))
      }
  }

  /// The retained target of a key, or the targets of a device.
  func target(_ name: String) -> String { topic(name, "") }
  func info(_ device: String) -> String { topic(device, "/info") }
  func event(_ key: String) -> String { topic(key, "/event") }

  /// `base/name` and an ending, in one allocation: every published message needs a topic.
  private func topic(_ name: String, _ ending: StaticString) -> String {
    let size = base.utf8.count + 1 + name.utf8.count + ending.utf8CodeUnitCount
    return unsafe String(unsafeUninitializedCapacity: size) { buffer in
      var writer = unsafe TopicWriter(buffer: buffer)
      writer.append(base)
      writer.append("/")
      writer.append(name)
      writer.append(ending)
      return writer.count
    }
  }

  /// Whether a topic is a command topic, of a key that exists or not.
  func isCommandTopic(_ topic: String) -> Bool {
    commandFilters.contains { Topic.matches(filter: $0, name: topic) }
  }

  /// The key or the device that a command topic names.
  func key(ofCommandTopic topic: String) -> String {
    let levels = topic.dropFirst(base.count + 1).split(
      separator: "/",
      omittingEmptySubsequences: false
    )
    return levels.dropLast().joined(separator: "/")
  }

  private var commandFilters: [String] {
    ["set", "step", "toggle", "flush", "cancel"].map { "\(base)/+/+/\($0)" }
      + ["\(base)/+/set", "\(base)/+/get"]
  }

  /// The subscriptions at a broker.
  func subscriptions(forBroker name: String?, isOwn: Bool) -> [Subscription] {
    var subscriptions: [Subscription] = []
    if isOwn {
      subscriptions += commandFilters.map { .init(filter: $0, wantsRetained: false, noLocal: true) }
      subscriptions.append(.init(filter: status, wantsRetained: true, noLocal: true))
      subscriptions += stateTopics.map { .init(filter: $0, wantsRetained: true) }
      if let announcer {
        let birth = announcer.birthTopic
        subscriptions.append(.init(filter: birth, wantsRetained: false, noLocal: true))
        subscriptions += announcer.filters.map {
          .init(filter: $0, wantsRetained: true, noLocal: true)
        }
      }
      subscriptions += inputTopics.map { .init(filter: $0, wantsRetained: false) }
    }
    for route in routes where (route.from.broker ?? "") == (name ?? "") {
      // A route without a policy forwards messages unchanged, retained ones included.
      let isForwarded = route.policy == nil
      subscriptions.append(
        .init(
          filter: route.from.topic,
          qos: route.qos,
          wantsRetained: isForwarded,
          noLocal: true,
          keepsRetainFlag: isForwarded
        )
      )
    }
    return Self.withoutOverlaps(subscriptions)
  }

  /// Leaves out filters that another one covers, since brokers deliver a message once for each
  /// subscription that it matches; the other one gets the options of both.
  private static func withoutOverlaps(
    _ subscriptions: [Subscription]
  ) -> [Subscription] {
    var kept: [Subscription] = []
    var places: [String: Int] = [:]
    for subscription in subscriptions {
      if let place = places[subscription.filter] {
        kept[place].absorb(subscription)
      } else {
        places[subscription.filter] = kept.count
        kept.append(subscription)
      }
    }
    let wild = kept.indices.filter { Topic.hasWildcard(kept[$0].filter) }
    var isCovered = Array(repeating: false, count: kept.count)
    for place in kept.indices {
      let cover = wild.first {
        $0 != place && Topic.covers(kept[$0].filter, kept[place].filter)
      }
      guard let cover else { continue }
      isCovered[place] = true
      kept[cover].absorb(kept[place])
    }
    return kept.indices.filter { !isCovered[$0] }.map { kept[$0] }
  }
}

/// Writes texts one after the other into a buffer that has room for them.
@safe private struct TopicWriter {
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private(set) var count = 0

  init(buffer: UnsafeMutableBufferPointer<UInt8>) {
    unsafe self.buffer = buffer
  }

  mutating func append(_ text: String) {
    let bytes = text.utf8.span
    unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
  }

  mutating func append(_ text: StaticString) {
    unsafe append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    let place = unsafe UnsafeMutableBufferPointer(rebasing: buffer[count...])
    _ = unsafe place.initialize(fromContentsOf: bytes)
    count += bytes.count
  }
}

extension Subscription {
  fileprivate mutating func absorb(_ other: Self) {
    qos = max(qos, other.qos)
    wantsRetained = wantsRetained || other.wantsRetained
    noLocal = noLocal || other.noLocal
    keepsRetainFlag = keepsRetainFlag || other.keepsRetainFlag
  }
}

extension Topic {
  /// Whether every topic that `narrow` matches is matched by `wide`, a different filter.
  fileprivate static func covers(_ wide: String, _ narrow: String) -> Bool {
    guard wide != narrow, matches(filter: wide, name: narrow) else { return false }
    guard narrow.hasSuffix("#") else { return true }
    let depth = { (filter: String) in filter.utf8.count { $0 == UInt8(ascii: "/") } }
    return wide.hasSuffix("#") && depth(wide) <= depth(narrow)
  }
}

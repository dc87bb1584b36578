// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import LastOut
import MQTT

/// The gateway's topics: which there are, what each means, what to subscribe to.
struct MQTTSurface: ~Copyable {
  let statusTopic: String
  /// What to ask once connected, each request once.
  let stateRequests: [StateRequest]
  /// Marks what routes publish, so that a message of our own is known when it comes back.
  let routeProperties: PublishProperties
  private let base: String
  private let routes: [RouteConfiguration]
  private let stateTopics: [String]
  private let inputTopics: [String]
  private(set) var topics = TopicTable()

  init(configuration: GatewayConfiguration, registry: Registry) {
    base = configuration.baseTopic
    routes = configuration.routes
    statusTopic = "\(base)/status"
    var properties = PublishProperties()
    properties.userProperties[Self.routeMark] = "\(HostName.current)/\(configuration.baseTopic)"
    routeProperties = properties
    var requests: [StateRequest] = []
    var states: [String] = []
    for (place, entry) in registry.properties.enumerated() {
      let key = KeyIndex(Int32(place))
      Self.addCommands(key, named: entry, of: registry, base: base, to: &topics)
      for (number, source) in entry.property.states.enumerated() {
        topics.add(.state(key, source: number), for: source.topic)
        states.append(source.topic)
        if let get = source.get, !requests.contains(get) { requests.append(get) }
      }
    }
    for (number, device) in registry.devices.enumerated() {
      topics.add(.deviceSet(number), for: "\(base)/\(device.id)/set")
      topics.add(.deviceGet(number), for: "\(base)/\(device.id)/get")
      for (place, source) in device.availability.enumerated() {
        topics.add(.availability(device: number, source: place), for: source.topic)
        states.append(source.topic)
      }
    }
    for (number, input) in configuration.inputs.enumerated() {
      topics.add(.input(number), for: input.topic)
    }
    topics.add(.status, for: statusTopic)
    stateRequests = requests
    stateTopics = Self.unique(states)
    inputTopics = Self.unique(configuration.inputs.map(\.topic))
  }

  /// The user property that marks routed messages.
  static let routeMark = "settle-route"

  private static func addCommands(
    _ key: KeyIndex, named entry: Registry.Entry, of registry: Registry, base: String,
    to topics: inout TopicTable
  ) {
    let device = registry.devices[entry.device].id
    for name in [entry.property.id] + entry.property.aliases {
      let topic = "\(base)/\(device)/\(name)"
      topics.add(.set(key), for: "\(topic)/set")
      topics.add(.step(key), for: "\(topic)/step")
      topics.add(.toggle(key), for: "\(topic)/toggle")
      topics.add(.flush(key), for: "\(topic)/flush")
      topics.add(.cancel(key), for: "\(topic)/cancel")
    }
  }

  private static func unique(_ topics: [String]) -> [String] {
    var seen: Set<String> = []
    return topics.filter { seen.insert($0).inserted }
  }

  /// The retained target of a key, or the targets of a device.
  func targetTopic(_ name: String) -> String { "\(base)/\(name)" }
  func infoTopic(_ device: String) -> String { "\(base)/\(device)/info" }
  func eventTopic(_ key: String) -> String { "\(base)/\(key)/event" }

  /// Whether a topic is one that commands come in by, whoever it names.
  func isCommandTopic(_ topic: String) -> Bool {
    commandFilters.contains { Topic.matches(filter: $0, name: topic) }
  }

  private var commandFilters: [String] {
    ["set", "step", "toggle", "flush", "cancel"].map { "\(base)/+/+/\($0)" }
      + ["\(base)/+/set", "\(base)/+/get"]
  }

  /// What to subscribe to at a broker.
  func subscriptions(forBroker name: String?, isOwn: Bool) -> [MQTTClient.Subscription] {
    var subscriptions: [MQTTClient.Subscription] = []
    if isOwn {
      subscriptions += commandFilters.map { .init(filter: $0, wantsRetained: false, noLocal: true) }
      subscriptions.append(.init(filter: statusTopic, wantsRetained: true, noLocal: true))
      subscriptions += stateTopics.map { .init(filter: $0, wantsRetained: true) }
      subscriptions += inputTopics.filter { !stateTopics.contains($0) }
        .map { .init(filter: $0, wantsRetained: false) }
    }
    for route in routes where (route.from.broker ?? "") == (name ?? "") {
      // What is only forwarded is forwarded as it is, retained messages included.
      let isForwarded = route.policy == nil
      guard !subscriptions.contains(where: { $0.filter == route.from.topic }) else { continue }
      subscriptions.append(
        .init(
          filter: route.from.topic, qos: route.qos, wantsRetained: isForwarded, noLocal: true))
    }
    return subscriptions
  }
}

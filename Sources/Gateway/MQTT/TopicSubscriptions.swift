// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import HomeAssistant
import Import
import LastOut
import MQTT
import Routing

/// The subscriptions at the brokers.
struct TopicSubscriptions: Sendable {
  private let base: String
  private let status: String
  private let routes: [RouteConfiguration]
  private let stateTopics: [String]
  /// The topics of inputs, and those on which sleeping devices report themselves, and lanes.
  private let liveTopics: [String]
  /// Where the meshes of lanes say that they are busy.
  private let busyTopics: [String]
  private let announcer: DiscoveryAnnouncer?
  /// The topics of announcements that are imported.
  private let announcements: [String]
  private let isPublic: Bool
  private let isCluster: Bool
  /// The topics of devices that appear with their first message.
  private let sources: [String]

  /// `sources` are devices that appear with their first message, `announcer` names the topics of
  /// Home Assistant, with discovery.
  init(
    configuration: GatewayConfiguration,
    registry: Registry,
    sources: [DeviceSource] = [],
    announcer: DiscoveryAnnouncer?
  ) {
    base = configuration.baseTopic
    status = "\(base)/status"
    routes = configuration.routes
    isPublic = configuration.isPublic
    let request = DeviceImport.request(configuration)
    announcements = request.map { $0.filters + $0.bridgeFilters } ?? []
    isCluster = configuration.cluster != nil
    self.sources = sources.map(\.filter)
    self.announcer = announcer
    let inputs = configuration.inputs.map(\.topic)
    var others = ["\(base)/#"] + inputs + routes.map(\.from.topic)
    if let announcer { others += [announcer.birthTopic] + announcer.filters }
    others += announcements
    let devices = DeviceTopics(registry, apartFrom: others)
    stateTopics = Self.unique(devices.states + sources.map(\.filter))
    busyTopics = configuration.lanes.values.compactMap { $0.busy?.topic }.sorted()
    liveTopics = Self.unique(inputs + devices.awake + busyTopics)
  }

  private static func unique<Item: Hashable>(_ items: [Item]) -> [Item] {
    var seen: Set<Item> = []
    return items.filter { seen.insert($0).inserted }
  }

  /// The filters of command topics.
  var commandFilters: [String] {
    ["set", "step", "toggle", "flush", "cancel"].map { "\(base)/+/+/\($0)" }
      + ["\(base)/+/set", "\(base)/+/get"] + (hasLights ? ["\(base)/+/+/light/set"] : [])
  }

  /// Whether lamps have topics in Home Assistant's schema.
  var hasLights: Bool { announcer != nil }

  /// The subscriptions at a broker.
  func all(forBroker name: String?, isOwn: Bool) -> [Subscription] {
    var subscriptions: [Subscription] = []
    if isCluster { return clusterSubscriptions(forBroker: name, isOwn: isOwn) }
    if isOwn, isPublic {
      subscriptions += commandFilters.map { .init(filter: $0, wantsRetained: false, noLocal: true) }
      subscriptions.append(.init(filter: status, wantsRetained: true, noLocal: true))
    }
    if isOwn {
      subscriptions += stateTopics.map { .init(filter: $0, wantsRetained: true) }
      subscriptions += discoverySubscriptions
      subscriptions += liveTopics.map { .init(filter: $0, wantsRetained: false) }
      subscriptions += announcements.map { .init(filter: $0, wantsRetained: true, noLocal: true) }
    }
    for route in routes where (route.from.broker ?? "") == (name ?? "") {
      subscriptions.append(Subscription(to: route))
    }
    subscriptions += groupSubscriptions(forBroker: name)
    if isOwn { subscriptions.append(markerSubscription) }
    return Self.withoutOverlaps(subscriptions)
  }

  /// Where Home Assistant says that it starts, and where announcements are retained.
  private var discoverySubscriptions: [Subscription] {
    guard let announcer else { return [] }
    var subscriptions = [
      Subscription(filter: announcer.birthTopic, wantsRetained: false, noLocal: true)
    ]
    subscriptions += announcer.filters.map {
      .init(filter: $0, wantsRetained: true, noLocal: true)
    }
    return subscriptions
  }

  /// Where the members of groups are announced to which routes lead.
  private func groupSubscriptions(forBroker name: String?) -> [Subscription] {
    RouteGroups.sources(of: routes).filter { $0.broker == name }.flatMap(\.topics).map {
      .init(filter: $0, wantsRetained: true)
    }
  }

  /// The marker that follows retained messages comes back to its sender.
  private var markerSubscription: Subscription {
    .init(filter: TopicMap.marker(below: base), wantsRetained: false)
  }

  /// The subscriptions of a member of a cluster beside those of ``ClusterSubscriptions``; routes
  /// from other brokers are added while this member drives them.
  private func clusterSubscriptions(forBroker name: String?, isOwn: Bool) -> [Subscription] {
    guard isOwn else { return groupSubscriptions(forBroker: name) }
    var subscriptions: [Subscription] = [.init(filter: status, wantsRetained: false, noLocal: true)]
    subscriptions.append(.init(filter: "\(status)/+", wantsRetained: true, noLocal: true))
    subscriptions += discoverySubscriptions
    subscriptions += sources.map { .init(filter: $0, wantsRetained: true) }
    subscriptions += busyTopics.map { .init(filter: $0, wantsRetained: false) }
    subscriptions += groupSubscriptions(forBroker: nil)
    subscriptions.append(markerSubscription)
    return Self.withoutOverlaps(subscriptions)
  }

  /// Leaves out filters that another one covers, since brokers deliver a message once for each
  /// subscription that it matches; the other one gets the options of both.
  private static func withoutOverlaps(
    _ subscriptions: [Subscription]
  ) -> [Subscription] {
    var kept = subscriptions.withoutRepetition
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

extension Subscription {
  /// The messages that a route forwards.
  init(to route: RouteConfiguration) {
    // A route without a policy forwards messages unchanged, retained ones included.
    let isForwarded = route.policy == nil
    self.init(
      filter: route.from.topic,
      qos: route.qos,
      wantsRetained: isForwarded,
      noLocal: true,
      keepsRetainFlag: isForwarded
    )
  }

  fileprivate mutating func absorb(_ other: Self) {
    qos = max(qos, other.qos)
    wantsRetained = wantsRetained || other.wantsRetained
    noLocal = noLocal || other.noLocal
    keepsRetainFlag = keepsRetainFlag || other.keepsRetainFlag
  }
}

extension [Subscription] {
  /// One subscription for each filter, with the options of all.
  var withoutRepetition: [Subscription] {
    var kept: [Subscription] = []
    var places: [String: Int] = [:]
    for subscription in self {
      if let place = places[subscription.filter] {
        kept[place].absorb(subscription)
      } else {
        places[subscription.filter] = kept.count
        kept.append(subscription)
      }
    }
    return kept
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

/// The filters for what devices report.
///
/// A hundred devices of a list share one filter with wildcards for each topic that names the device
/// in whole levels. Fewer do not: such a filter may match topics of devices that are not in the
/// list. Devices that appear with their first message do not either: what is retained on their
/// topics would arrive before they do.
struct DeviceTopics {
  /// How many devices of a template share filters.
  private static let sharers = 100

  /// Where states and availability are reported.
  private(set) var states: [String] = []
  /// Where sleeping devices report themselves.
  private(set) var awake: [String] = []
  /// The definitions all of whose topics devices share.
  private var whole: Set<ObjectIdentifier> = []
  /// The filter of each topic of a definition that devices share.
  private var shared: [ObjectIdentifier: [String: String]] = [:]

  /// Collects the topics of all devices; no shared filter matches what any of `others` does.
  init(_ registry: Registry, apartFrom others: [String]) {
    for template in registry.templates
    where template.count >= Self.sharers && template.definition.marks == [TemplateMark.item] {
      share(template.definition, apartFrom: others)
    }
    let rest = registry.deviceNumbers.filter {
      !whole.contains(ObjectIdentifier(registry.definition(ofDevice: $0)))
    }
    for number in rest { addStates(ofDevice: number, in: registry) }
    for number in rest { addOthers(ofDevice: number, in: registry) }
  }

  /// Adds the filters that the devices of a template share.
  private mutating func share(_ definition: DeviceDefinition, apartFrom others: [String]) {
    var filters: [String: String] = [:]
    var isWhole = true
    func filter(_ topic: String) -> String? {
      guard let marked = MarkedTopic(topic, marks: definition.marks), marked.hasWholeLevels,
        !others.contains(where: { Topic.overlaps($0, marked.filter) })
      else {
        isWhole = false
        return nil
      }
      filters[topic] = marked.filter
      return marked.filter
    }
    let pattern = definition.pattern
    for property in pattern.properties { states += property.states.compactMap { filter($0.topic) } }
    states += pattern.availability.compactMap { filter($0.topic) }
    if let topic = pattern.awake.flatMap({ filter($0.topic) }) { awake.append(topic) }
    shared[ObjectIdentifier(definition)] = filters
    if isWhole { whole.insert(ObjectIdentifier(definition)) }
  }

  private mutating func addStates(ofDevice number: Int, in registry: Registry) {
    let definition = registry.definition(ofDevice: number)
    let filters = definition.isShared ? shared[ObjectIdentifier(definition)] ?? [:] : [:]
    for property in definition.pattern.properties {
      for source in property.states where filters[source.topic] == nil {
        states.append(registry.filled(source.topic, ofDevice: number))
      }
    }
  }

  private mutating func addOthers(ofDevice number: Int, in registry: Registry) {
    let definition = registry.definition(ofDevice: number)
    let filters = definition.isShared ? shared[ObjectIdentifier(definition)] ?? [:] : [:]
    for source in definition.pattern.availability where filters[source.topic] == nil {
      states.append(registry.filled(source.topic, ofDevice: number))
    }
    if let topic = definition.pattern.awake?.topic, filters[topic] == nil {
      awake.append(registry.filled(topic, ofDevice: number))
    }
  }
}

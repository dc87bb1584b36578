// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut

/// Debounces topics onto other topics; payloads stay opaque.
///
/// It decides without doing: messages and the time go in, publishes come out. Brokers are numbered:
/// 0 is the gateway's own, the others follow in the order of the configuration.
package struct RouteMachine: ~Copyable {
  /// One message for a broker.
  package struct Publish: Sendable {
    /// Identifies the message in ``RouteMachine/finish(_:_:)``.
    package var number: UInt64
    package var topic: String
    package var payload: [UInt8]
    package var qos: Int
    package var retain: Bool
    /// The gateways the message has passed, see ``RouteTrail``.
    package var trail: String
  }

  /// What happened to a received message.
  package enum Verdict: Hashable, Sendable {
    /// No route matches the topic.
    case noRoute
    case accepted
    /// Accepted, although it is no announcement that could be rewritten.
    case acceptedUnread
    /// A retained message on a debounced route.
    case retained
    /// The table of topics is full, or too many messages wait.
    case overflow
    /// It was forwarded to this topic before, and has come back.
    case returned(to: String)
  }

  package struct Statistics: Sendable {
    package var messages: UInt64 = 0
    package var collapsed: UInt64 = 0
    package var published: UInt64 = 0
    package var acknowledged: UInt64 = 0
    package var expired: UInt64 = 0
  }

  /// A route with its brokers as numbers; a class, so that reading one copies nothing.
  final class Route: Sendable {
    let configuration: RouteConfiguration
    let from: Int
    let to: Int
    /// Whether the route looks inside JSON payloads.
    let readsDocument: Bool
    /// The quiet period of messages without a number, where it is the shorter one.
    let wordDelay: Duration?
    /// Rewrites announcements; `nil` for a route with other messages.
    let rewriter: AnnouncementRewriter?

    init(
      _ configuration: RouteConfiguration,
      from: Int,
      to: Int,
      rewriter: AnnouncementRewriter?
    ) {
      self.configuration = configuration
      self.from = from
      self.to = to
      self.rewriter = rewriter
      let delay = configuration.policy?.delay
      wordDelay = configuration.wordDelay.flatMap { word in
        delay.map { word < $0 ? word : nil } ?? nil
      }
      readsDocument =
        configuration.mergesJSON || configuration.wordDelay != nil || rewriter != nil
        || (configuration.pass + configuration.urgent).contains(where: \.needsDocument)
    }
  }

  /// One output topic of one route.
  struct Output {
    let route: Int
    let topic: String
    /// The devices that its messages reach, where groups are announced.
    var target: RouteGroups.Target?
    var waiting = Deque<Entry>()
    var inFlight: Entry?
    /// What is sent again if the message in flight is lost; `nil` once something newer has replaced
    /// it.
    var repeatable: Content?
    /// The generation of the newest publish; distinguishes a late answer from a current one.
    var flight: UInt32 = 0
    var isQueued = false
  }

  let routes: [Route]
  let ttl: Duration
  package let limit: Int
  /// Larger payloads of a route without a policy, in bytes, give way to newer ones while they wait.
  let payloadLimit: Int
  /// Input topics, prefixed by the broker's number where it is not 0.
  var names = KeyTable()
  /// By input topic: the outputs it feeds, one for each matching route.
  var outputsByName = KeyArray<[KeyIndex]>()
  var outputs = KeyArray<Output>()
  var core = LastOutCore<Content>(policy: .standard)
  /// By broker: the outputs with something to send, in order.
  var order: [Deque<KeyIndex>]
  var returns = ReturnDetector()
  var groups: RouteGroups
  /// By device of an announced group: the outputs that reach it.
  var outputsByDevice: [Int: [KeyIndex]] = [:]
  /// How many messages outputs have received.
  var received: UInt64 = 0
  var inFlightCount = 0
  var waitingCount = 0
  package internal(set) var statistics = Statistics()
  private var nameBuffer: [UInt8] = []
  /// Outputs whose topic was evicted, to be reused.
  private var freeOutputs: [KeyIndex] = []
  /// Messages sent or expired since the last search for idle topics.
  var departures = 0

  /// - Parameters:
  ///   - routes: The routes, in the order of the configuration.
  ///   - brokers: The names of the further brokers, in the order of their numbers from 1.
  ///   - ttl: How long a value may wait for an absent broker.
  ///   - limit: Bounds the topics that are remembered (idle ones are evicted for new ones) and the
  ///     messages that wait.
  ///   - payloadLimit: Of larger payloads, in bytes, that a route without a policy forwards, only
  ///     the newest of a topic waits.
  package init(
    _ routes: [RouteConfiguration],
    brokers: [String],
    ttl: Duration,
    limit: Int,
    payloadLimit: Int = .max
  ) {
    func number(_ name: String?) -> Int {
      name.flatMap { brokers.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
    }
    self.routes = routes.map { route in
      let (from, to) = (number(route.from.broker), number(route.to.broker))
      func others(from: Int, to: Int) -> [RouteConfiguration] {
        routes.filter {
          !$0.announces && number($0.from.broker) == from && number($0.to.broker) == to
        }
      }
      return Route(
        route,
        from: from,
        to: to,
        // Commands take the opposite way.
        rewriter: route.announces
          ? AnnouncementRewriter(
            commands: others(from: to, to: from),
            reports: others(from: from, to: to)
          ) : nil
      )
    }
    groups = RouteGroups(RouteGroups.sources(of: routes).map { (number($0.broker), $0.base) })
    self.ttl = ttl
    self.limit = limit
    self.payloadLimit = payloadLimit
    order = Array(repeating: Deque(), count: brokers.count + 1)
  }

  /// Whether there are no routes at all.
  package var isEmpty: Bool { routes.isEmpty }

  package var nextDeadline: Moment? {
    guard let pause = returns.nextDeadline else { return core.nextDeadline }
    return core.nextDeadline.map { min($0, pause) } ?? pause
  }

  /// Whether nothing waits and everything sent was answered.
  package var isDrained: Bool {
    core.pendingCount == 0 && waitingCount == 0 && inFlightCount == 0
  }

  /// Whether any route matches this topic.
  package func matches(_ topic: Span<UInt8>, from broker: Int) -> Bool {
    let name = Text.of(topic)
    return routes.contains {
      $0.from == broker && $0.configuration.destination(of: name) != nil
    }
  }

  /// Whether one of these outputs belongs to a route that looks inside JSON payloads, or reaches a
  /// device of a group.
  package func needsDocument(_ keys: [KeyIndex]) -> Bool {
    keys.contains {
      let output = outputs[$0]
      return routes[output.route].readsDocument || output.target != nil
    }
  }

  /// Whether all these outputs, at least one, belong to routes that forward every message.
  package func forwardsAll(_ keys: [KeyIndex]) -> Bool {
    !keys.isEmpty
      && keys.allSatisfy { routes[outputs[$0].route].configuration.policy == nil }
  }

  // MARK: - Topics

  /// The outputs that a topic feeds, matched against the filters when the topic is first seen.
  ///
  /// - Returns: `nil` when a route matches, but the table of topics is full.
  package mutating func outputs(fedBy topic: Span<UInt8>, broker: Int) -> [KeyIndex]? {
    if Self.isUnprefixed(topic, broker: broker) {
      if let known = names.find(topic) { return outputsByName[known] }
      return learn(topic, broker: broker, as: topic)
    }
    var name: [UInt8] = []
    swap(&name, &nameBuffer)  // Reused, so that a known topic costs no allocation.
    defer { nameBuffer = name }
    name.removeAll(keepingCapacity: true)
    name.append(UInt8(truncatingIfNeeded: broker))
    unsafe topic.withUnsafeBufferPointer { unsafe name.append(contentsOf: $0) }
    if let known = names.find(name.span) { return outputsByName[known] }
    return learn(topic, broker: broker, as: name.span)
  }

  /// The topic that an output publishes on.
  package func topic(of output: KeyIndex) -> String { outputs[output].topic }

  /// The number of the route that an output belongs to.
  package func route(of output: KeyIndex) -> Int { outputs[output].route }

  /// Topics of broker 0 need no prefix, unless they could be mistaken for one.
  private static func isUnprefixed(_ topic: Span<UInt8>, broker: Int) -> Bool {
    broker == 0 && !topic.isEmpty && topic[0] >= UInt8(ascii: " ")
  }

  private mutating func learn(
    _ topic: Span<UInt8>,
    broker: Int,
    as name: Span<UInt8>
  ) -> [KeyIndex]? {
    guard names.count < limit || evictIdle() else {
      return matches(topic, from: broker) ? nil : []
    }
    let found = makeOutputs(fedBy: topic, broker: broker)
    // A topic without a route is not remembered: anyone could fill the table with those.
    guard !found.isEmpty else { return [] }
    _ = names.intern(name)
    outputsByName.append(found)
    return found
  }

  private mutating func makeOutputs(fedBy topic: Span<UInt8>, broker: Int) -> [KeyIndex] {
    let name = Text.of(topic)
    var found: [KeyIndex] = []
    for (number, route) in routes.enumerated() where route.from == broker {
      guard let stated = route.configuration.destination(of: name) else { continue }
      let destination = route.rewriter?.topic(stated) ?? stated
      let key: KeyIndex
      if let free = freeOutputs.popLast() {
        key = free
        returns.forget(key)
        forgetTarget(of: key)
        let flight = outputs[free].flight
        outputs[free] = Output(route: number, topic: destination, flight: flight)
      } else {
        key = KeyIndex(Int32(outputs.count))
        outputs.append(Output(route: number, topic: destination))
      }
      if let policy = route.configuration.policy { core.setPolicy(policy, for: key) }
      findTarget(of: key)
      found.append(key)
    }
    return found
  }

  /// Evicts the topics with nothing pending, waiting or in flight; `false` if none was found.
  ///
  /// Looks at every topic, so it runs only after enough messages have left.
  private mutating func evictIdle() -> Bool {
    guard departures > limit / 16 else { return false }
    departures = 0
    var kept = KeyTable()
    var keptOutputs = KeyArray<[KeyIndex]>()
    for name in outputsByName.keys {
      let keys = outputsByName[name]
      if keys.contains(where: { isBusy($0) }) {
        _ = kept.intern(names.name(of: name))
        keptOutputs.append(keys)
      } else {
        freeOutputs += keys
      }
    }
    names = kept
    outputsByName = keptOutputs
    return names.count < limit
  }

  private func isBusy(_ key: KeyIndex) -> Bool {
    let output = outputs[key]
    return output.inFlight != nil || output.isQueued || !output.waiting.isEmpty
      || core.pending(key) != nil
  }
}

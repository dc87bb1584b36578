// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import LastOut

/// Routes: topics debounced onto other topics, payloads taken as they are.
///
/// Decides without doing,
/// like the command state machine: messages and the time go in, publishes come out.
///
/// Brokers are numbered: 0 is the gateway's own, the others follow as the configuration names them.
struct RouteMachine: ~Copyable {
  /// One message for a broker.
  struct Publish {
    var token: UInt64
    var topic: String
    var payload: [UInt8]
    var qos: Int
    var retain: Bool
    /// The marks of the gateways it has come through.
    var trail: String
  }

  enum Outcome {
    case acknowledged
    case refused
    case lost
  }

  /// What became of a message that came in.
  enum Verdict {
    /// No route takes this topic.
    case noRoute
    case taken
    /// A retained message on a debounced route.
    case retained
    /// No further topic can be remembered, or too many messages wait.
    case overflow
  }

  struct Statistics {
    var messages: UInt64 = 0
    var collapsed: UInt64 = 0
    var published: UInt64 = 0
    var acknowledged: UInt64 = 0
    var expired: UInt64 = 0
  }

  /// One route with its brokers numbered; an object, so that whoever looks at it copies nothing.
  final class Road {
    let configuration: RouteConfiguration
    let from: Int
    let to: Int

    init(_ configuration: RouteConfiguration, from: Int, to: Int) {
      self.configuration = configuration
      self.from = from
      self.to = to
    }
  }

  /// What has settled and waits for its broker.
  struct Entry {
    var content: Pending
    var retain: Bool
    /// Must not be replaced by anything newer.
    var isPassed: Bool
    var readyAt: Moment

    /// Whether `older` need not leave once this waits: both have settled and are of one kind.
    func canReplace(_ older: Entry) -> Bool {
      !isPassed && !older.isPassed && older.content.isSameKind(as: content)
    }
  }

  /// One topic of one route.
  struct Lane {
    let road: Int
    let topic: String
    var waiting = WaitingEntries()
    var inFlight: Entry?
    var isQueued = false
  }

  /// A value in its quiet period.
  struct Pending {
    enum Content {
      case bytes([UInt8])
      /// `merge: json`: the newest of each member.
      case members([JSONValue.Member])
    }

    var content: Content
    /// The marks of the gateways it has come through; empty for most.
    var trail: String

    var payload: [UInt8] {
      switch content {
      case .bytes(let bytes): bytes
      case .members(let members): JSONWriter.bytes(.object(members))
      }
    }

    /// Whether both are objects to merge, or neither is: only then one stands for the other.
    func isSameKind(as other: Pending) -> Bool {
      switch (content, other.content) {
      case (.bytes, .bytes), (.members, .members): true
      case (.bytes, .members), (.members, .bytes): false
      }
    }

    /// What is left when `newer` replaces this: of two objects, the newest of each member.
    func replaced(by newer: Pending) -> Pending {
      guard case .members(let old) = content, case .members(let new) = newer.content else {
        return newer
      }
      return Pending(
        content: .members(RouteMachine.newest(old, new)),
        trail: RouteTrail.joined(trail, newer.trail)
      )
    }
  }

  let roads: [Road]
  let ttl: Duration
  let limit: Int
  /// Names are the topic, behind the broker's number as one byte where they need one.
  var names = KeyTable()
  /// By name: the lanes it feeds, one for each route that takes it.
  var lanesByName: [[KeyIndex]] = []
  var lanes: [Lane] = []
  var core = LastOutCore<Pending>(policy: .standard)
  /// By broker: the lanes with something to send, in order.
  var order: [WaitingLine<KeyIndex>]
  var flights: [UInt32] = []
  var inFlightCount = 0
  var waitingCount = 0
  var statistics = Statistics()
  private var nameBuffer: [UInt8] = []
  /// Places whose topic was forgotten, for new ones.
  private var freePlaces: [KeyIndex] = []
  /// Messages that have left or expired since idle topics were last looked for.
  var departures = 0

  /// Numbers the brokers and starts with no topics.
  ///
  /// `brokers` are the names of the further ones, in the order of their numbers from 1; `ttl` is how
  /// long a value may wait for an absent broker; `limit` bounds the topics that are remembered, of
  /// which idle ones give way to new ones, and the messages that wait.
  init(_ routes: [RouteConfiguration], brokers: [String], ttl: Duration, limit: Int) {
    func number(_ name: String?) -> Int {
      name.flatMap { brokers.firstIndex(of: $0) }.map { $0 + 1 } ?? 0
    }
    roads = routes.map {
      Road($0, from: number($0.from.broker), to: number($0.to.broker))
    }
    self.ttl = ttl
    self.limit = limit
    order = Array(repeating: WaitingLine(), count: brokers.count + 1)
  }

  var nextDeadline: Moment? { core.nextDeadline }

  /// Whether nothing waits and everything was answered.
  var isDrained: Bool { core.pendingCount == 0 && waitingCount == 0 && inFlightCount == 0 }

  /// Whether any route takes this topic.
  func takes(_ topic: Span<UInt8>, from broker: Int) -> Bool {
    let name = Text.of(topic)
    return roads.contains {
      $0.from == broker && RouteTopic.destination(of: name, by: $0.configuration) != nil
    }
  }

  /// The lanes that a topic feeds; matched against the filters when it is first seen.
  mutating func lanes(fedBy topic: Span<UInt8>, broker: Int) -> [KeyIndex]? {
    if Self.namesItself(topic, broker: broker) {
      if let known = names.find(topic) { return lanesByName[Int(known.rawValue)] }
      return learn(topic, broker: broker, as: topic)
    }
    var name: [UInt8] = []
    swap(&name, &nameBuffer)  // Reused, so that a known topic costs no allocation.
    defer { nameBuffer = name }
    name.removeAll(keepingCapacity: true)
    name.append(UInt8(truncatingIfNeeded: broker))
    unsafe topic.withUnsafeBufferPointer { unsafe name.append(contentsOf: $0) }
    if let known = names.find(name.span) { return lanesByName[Int(known.rawValue)] }
    return learn(topic, broker: broker, as: name.span)
  }

  /// Whether a topic needs no number before it: the own broker's, unless it begins as one with a
  /// number does.
  private static func namesItself(_ topic: Span<UInt8>, broker: Int) -> Bool {
    broker == 0 && !topic.isEmpty && topic[0] >= UInt8(ascii: " ")
  }

  /// Notes which lanes a topic feeds that was not known.
  private mutating func learn(
    _ topic: Span<UInt8>,
    broker: Int,
    as name: Span<UInt8>
  ) -> [KeyIndex]? {
    guard names.count < limit || hasForgottenIdle() else {
      return takes(topic, from: broker) ? nil : []
    }
    let found = newLanes(fedBy: topic, broker: broker)
    // A topic that no route takes is not remembered: anybody could fill the table with those.
    guard !found.isEmpty else { return [] }
    _ = names.intern(name)
    lanesByName.append(found)
    return found
  }

  private mutating func newLanes(fedBy topic: Span<UInt8>, broker: Int) -> [KeyIndex] {
    let name = Text.of(topic)
    var found: [KeyIndex] = []
    for (place, road) in roads.enumerated() where road.from == broker {
      guard let destination = RouteTopic.destination(of: name, by: road.configuration) else {
        continue
      }
      let key = freePlaces.popLast() ?? KeyIndex(Int32(lanes.count))
      if Int(key.rawValue) < lanes.count {
        lanes[Int(key.rawValue)] = Lane(road: place, topic: destination)
      } else {
        lanes.append(Lane(road: place, topic: destination))
        flights.append(0)
      }
      if let policy = road.configuration.policy { core.setPolicy(policy, for: key) }
      found.append(key)
    }
    return found
  }

  /// Forgets the topics with nothing pending, waiting or under way; `false` if there is no room yet.
  ///
  /// Costs a look at every topic, so that some must have become idle since the last.
  private mutating func hasForgottenIdle() -> Bool {
    guard departures > limit / 16 else { return false }
    departures = 0
    var kept = KeyTable()
    var keptLanes: [[KeyIndex]] = []
    for (number, keys) in lanesByName.enumerated() {
      if keys.contains(where: { isBusy($0) }) {
        _ = kept.intern(names.name(of: KeyIndex(Int32(number))))
        keptLanes.append(keys)
      } else {
        freePlaces += keys
      }
    }
    names = kept
    lanesByName = keptLanes
    return names.count < limit
  }

  private func isBusy(_ key: KeyIndex) -> Bool {
    let lane = lanes[Int(key.rawValue)]
    return lane.inFlight != nil || lane.isQueued || !lane.waiting.isEmpty
      || core.pending(key) != nil
  }
}

/// Bytes from outside as text; what is not UTF-8 is replaced.
enum Text {
  static func of(_ bytes: Span<UInt8>) -> String {
    var copy: [UInt8] = []
    copy.reserveCapacity(bytes.count)
    for position in bytes.indices { copy.append(bytes[position]) }
    return String(decoding: copy, as: UTF8.self)
  }
}

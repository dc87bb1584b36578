// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import JSONParsing
import LastOut
import MQTT
import MQTTTopics

/// What comes in, settles and leaves.
extension RouteMachine {
  /// Takes one message that came from `broker`.
  mutating func received(
    _ topic: Span<UInt8>,
    _ payload: Span<UInt8>,
    retained: Bool,
    trail: String = "",
    from broker: Int,
    at now: Moment
  ) -> Verdict {
    guard let keys = lanes(fedBy: topic, broker: broker) else { return .overflow }
    guard !keys.isEmpty else { return .noRoute }
    return received(payload, for: keys, retained: retained, trail: trail, at: now)
  }

  /// The same for a topic that is known to feed `keys`.
  mutating func received(
    _ payload: Span<UInt8>,
    for keys: [KeyIndex],
    retained: Bool,
    trail: String,
    at now: Moment
  ) -> Verdict {
    statistics.messages += 1
    var verdict = Verdict.taken
    for key in keys {
      let road = roads[lanes[Int(key.rawValue)].road]
      if road.configuration.policy == nil {
        if !pass(payload, trail, for: key, retain: retained, at: now) { verdict = .overflow }
      } else if retained {
        verdict = .retained
      } else if !settle(payload, trail, for: key, by: road, at: now) {
        verdict = .overflow
      }
    }
    return verdict
  }

  /// Lets a message leave as it is; `false` when too many wait already.
  private mutating func pass(
    _ payload: Span<UInt8>,
    _ trail: String,
    for key: KeyIndex,
    retain: Bool,
    at now: Moment
  ) -> Bool {
    dropExpired(Int(key.rawValue), at: now)
    guard waitingCount < limit else { return false }
    let content = Pending(content: .bytes(Bytes.of(payload)), trail: trail)
    wait(content, for: key, retain: retain, isPassed: true, at: now)
    return true
  }

  private mutating func settle(
    _ payload: Span<UInt8>,
    _ trail: String,
    for key: KeyIndex,
    by road: Road,
    at now: Moment
  ) -> Bool {
    let mergesJSON = road.configuration.mergesJSON
    let needsDocument = mergesJSON || !road.configuration.passMembers.isEmpty
    let document = needsDocument ? try? JSONParser.parse(payload) : nil
    if passes(payload, document, by: road) {
      flush(key, at: now)
      return pass(payload, trail, for: key, retain: false, at: now)
    }
    var pending = Pending(content: .bytes(Bytes.of(payload)), trail: trail)
    if mergesJSON {
      if case .object(let members)? = document {
        pending.content = .members(RouteMachine.newest([], members))
      }
      // Elsewhere nothing is merged: the newer payload stands for the older one.
      guard makeWay(for: pending, of: key, at: now) else { return false }
      if let older = core.pending(key)?.value { pending = older.replaced(by: pending) }
    }
    if core.enqueue(pending, for: key, at: now) != nil { statistics.collapsed += 1 }
    while let run = core.nextReady(at: now) {
      core.finish(run.key, at: now)
      wait(run.value, for: run.key, retain: false, isPassed: false, at: now)
    }
    return true
  }

  /// Flushes what is pending if `newer` is of the other kind, so that neither replaces the other;
  /// `false` when too many wait already for one more beside the last.
  private mutating func makeWay(
    for newer: Pending,
    of key: KeyIndex,
    at now: Moment
  ) -> Bool {
    let place = Int(key.rawValue)
    let older = core.pending(key)?.value
    let settled = lanes[place].waiting.last.flatMap { $0.isPassed ? nil : $0.content }
    guard let before = older ?? settled, !before.isSameKind(as: newer) else { return true }
    dropExpired(place, at: now)
    guard waitingCount < limit else { return false }
    if older != nil { flush(key, at: now) }
    return true
  }

  /// Whether a message leaves at once, after flushing its topic.
  private func passes(
    _ payload: Span<UInt8>,
    _ document: JSONValue?,
    by road: Road
  ) -> Bool {
    for passing in road.configuration.passPayloads where Bytes.areEqual(payload, passing) {
      return true
    }
    guard let document else { return false }
    return road.configuration.passMembers.contains { $0.value(in: document) != nil }
  }

  /// `older` with every member of `newer` put in its place, or at the end.
  static func newest(
    _ older: [JSONValue.Member],
    _ newer: [JSONValue.Member]
  ) -> [JSONValue.Member] {
    var merged = older
    for member in newer {
      if let place = merged.firstIndex(where: { $0.name == member.name }) {
        merged[place] = member
      } else {
        merged.append(member)
      }
    }
    return merged
  }

  mutating func advance(to now: Moment) {
    while let run = core.nextRun(at: now) {
      core.finish(run.key, at: now)
      wait(run.value, for: run.key, retain: false, isPassed: false, at: now)
    }
  }

  private mutating func flush(_ key: KeyIndex, at now: Moment) {
    guard case .run(let run) = core.flush(key, at: now) else { return }
    core.finish(key, at: now)
    wait(run.value, for: key, retain: false, isPassed: false, at: now)
  }

  /// Ends every quiet period.
  mutating func flushAll(at now: Moment) {
    for key in core.pendingKeys() { flush(key, at: now) }
  }

  /// Lets a payload wait for its broker; a settled one replaces the settled one of its kind that is
  /// right before it.
  private mutating func wait(
    _ content: Pending,
    for key: KeyIndex,
    retain: Bool,
    isPassed: Bool,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    var entry = Entry(content: content, retain: retain, isPassed: isPassed, readyAt: now)
    if let last = lanes[place].waiting.last, entry.canReplace(last) {
      statistics.collapsed += 1
      entry.content = last.content.replaced(by: content)
      lanes[place].waiting.replaceLast(entry)
    } else {
      lanes[place].waiting.append(entry)
      waitingCount += 1
    }
    queue(key)
  }

  private mutating func queue(_ key: KeyIndex) {
    let place = Int(key.rawValue)
    guard !lanes[place].isQueued, lanes[place].inFlight == nil, !lanes[place].waiting.isEmpty
    else { return }
    lanes[place].isQueued = true
    order[roads[lanes[place].road].to].append(key)
  }

  /// The next messages for a broker, `room` at most; call it while its client can publish.
  mutating func nextPublishes(for broker: Int, room: Int, at now: Moment) -> [Publish] {
    var publishes: [Publish] = []
    while publishes.count < room, let key = order[broker].popFirst() {
      let place = Int(key.rawValue)
      lanes[place].isQueued = false
      dropExpired(place, at: now)
      guard let entry = lanes[place].waiting.popFirst() else { continue }
      waitingCount -= 1
      lanes[place].inFlight = entry
      inFlightCount += 1
      flights[place] = (flights[place] &+ 1) & 0x0FFF_FFFF
      statistics.published += 1
      publishes.append(
        Publish(
          token: UInt64(flights[place]) << 32 | UInt64(place),
          topic: lanes[place].topic,
          payload: entry.content.payload,
          qos: roads[lanes[place].road].configuration.qos,
          retain: entry.retain,
          trail: entry.content.trail
        )
      )
    }
    return publishes
  }

  private mutating func dropExpired(_ place: Int, at now: Moment) {
    let expired = lanes[place].waiting.dropExpired(after: ttl, at: now)
    waitingCount -= expired
    departures += expired
    statistics.expired += UInt64(expired)
  }

  /// Takes the broker's answer; a token that has landed already is ignored.
  mutating func finish(_ token: UInt64, _ outcome: Outcome) {
    let place = Int(token & 0xFFFF_FFFF)
    guard place < flights.count, flights[place] == UInt32(token >> 32),
      let entry = lanes[place].inFlight
    else { return }
    lanes[place].inFlight = nil
    inFlightCount -= 1
    departures += 1
    switch outcome {
    case .acknowledged: statistics.acknowledged += 1
    case .refused: break
    case .lost:
      if var newer = lanes[place].waiting.first, newer.canReplace(entry) {
        newer.content = entry.content.replaced(by: newer.content)
        lanes[place].waiting.replaceFirst(newer)
      } else {
        lanes[place].waiting.prepend(entry)
        waitingCount += 1
      }
    }
    queue(KeyIndex(Int32(place)))
  }

  /// The topics whose last value has not been acknowledged.
  func unsentTopics() -> [String] {
    lanes.indices.filter {
      !lanes[$0].waiting.isEmpty || lanes[$0].inFlight != nil
        || core.pending(KeyIndex(Int32($0))) != nil
    }.map { lanes[$0].topic }
  }
}

/// The marks of the gateways that a routed message has come through, in order, apart by spaces.
enum RouteTrail {
  /// More than anybody's house has one after the other.
  private static let longest = 16

  /// Whether a message with this trail has been here, or goes round without an end.
  static func leads(_ trail: String, backTo mark: String) -> Bool {
    let marks = trail.split(separator: " ")
    return marks.count >= longest || marks.contains { $0 == mark }
  }

  /// Both trails, each mark once.
  static func joined(_ trail: String, _ other: String) -> String {
    if trail.isEmpty || trail == other { return other }
    var marks = trail.split(separator: " ")
    for mark in other.split(separator: " ") where !marks.contains(mark) { marks.append(mark) }
    return marks.joined(separator: " ")
  }
}

/// Where a route sends a topic.
enum RouteTopic {
  /// `nil` when the route does not take `topic`.
  static func destination(of topic: String, by route: RouteConfiguration) -> String? {
    guard let captures = Topic.captures(filter: route.from.topic, name: topic),
      let destination = Topic.fill(template: route.to.topic, with: captures),
      Topic.problem(inName: destination) == nil
    else { return nil }
    return destination
  }
}

/// Copies and comparisons of bytes that are only lent.
enum Bytes {
  static func of(_ span: Span<UInt8>) -> [UInt8] {
    unsafe span.withUnsafeBufferPointer { unsafe Array($0) }
  }

  static func areEqual(_ span: Span<UInt8>, _ bytes: [UInt8]) -> Bool {
    guard span.count == bytes.count else { return false }
    for position in span.indices where span[position] != bytes[position] { return false }
    return true
  }
}

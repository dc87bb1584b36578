// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut

/// The order of messages for a group and for its members, which have topics of their own.
///
/// A message for a group ends what waits for its members and what it replaces. Any other older
/// message for one of the same devices is sent before it, where their order matters: the quiet
/// period of the older one ends, and the newer one waits until the broker has acknowledged it.
extension RouteMachine {
  /// Reads an announcement of groups; `false` if the message is none.
  package mutating func readAnnouncement(
    _ payload: Span<UInt8>,
    topic: Span<UInt8>,
    broker: Int
  ) -> Bool {
    guard groups.read(payload, topic: topic, broker: broker) else { return false }
    outputsByDevice = [:]
    for key in outputs.keys {
      outputs[key].target = nil
      findTarget(of: key)
    }
    return true
  }

  /// Finds the devices that an output reaches; it has none yet.
  mutating func findTarget(of key: KeyIndex) {
    let broker = routes[outputs[key].route].to
    outputs[key].target = groups.target(of: outputs[key].topic, broker: broker)
    for device in outputs[key].target?.devices ?? [] {
      outputsByDevice[device, default: []].append(key)
    }
  }

  /// An output gets another topic.
  mutating func forgetTarget(of key: KeyIndex) {
    for device in outputs[key].target.take()?.devices ?? [] {
      outputsByDevice[device]?.removeAll { $0 == key }
    }
  }

  /// The other outputs that reach one of these devices, and what they reach.
  private func others(
    than key: KeyIndex,
    _ target: RouteGroups.Target
  ) -> [(key: KeyIndex, target: RouteGroups.Target)] {
    var found: Set<KeyIndex> = []
    for device in target.devices { found.formUnion(outputsByDevice[device] ?? []) }
    found.remove(key)
    return found.sorted { $0.rawValue < $1.rawValue }.compactMap { key in
      outputs[key].target.map { (key, $0) }
    }
  }

  /// Whether the next message of an output must not be sent before an older one of another.
  func isBehind(_ key: KeyIndex, at now: Moment) -> Bool {
    guard let target = outputs[key].target, let first = outputs[key].waiting.first else {
      return false
    }
    let newer = first.content.statement(to: target)
    for other in others(than: key, target) {
      let output = outputs[other.key]
      var older = output.repeatable.map { [$0] } ?? []
      for entry in output.waiting.all where entry.readyAt.duration(to: now) <= ttl {
        older.append(entry.content)
      }
      let isBlocked = older.contains {
        $0.stamp < first.content.stamp && newer.conflicts(with: $0.statement(to: other.target))
      }
      if isBlocked { return true }
    }
    return false
  }

  /// Ends what a message that is accepted next replaces for the same devices, and lets
  /// everything else that is older be sent before it.
  ///
  /// - Returns: `false` when there may be no room for that, and nothing was done.
  mutating func follow(
    _ content: Content,
    for key: KeyIndex,
    isUrgent: Bool = false,
    at now: Moment
  ) -> Bool {
    guard let target = outputs[key].target else { return true }
    let others = others(than: key, target)
    guard isUrgent || waitingCount < limit || !others.contains(where: { core.isPending($0.key) })
    else { return false }
    let newer = content.statement(to: target)
    for other in others {
      if target.covers(other.target) { end(other.key, other.target, replacedBy: newer, at: now) }
      seal(other.key, other.target, before: newer, at: now)
    }
    // Its own older messages that must not be merged with it.
    updateWaiting(key) { entry in
      guard entry.isSealed, case .nothing = entry.content.remainder(target, replacedBy: newer)
      else {
        return entry
      }
      return nil
    }
    return true
  }

  /// Ends what an output has and `newer` replaces; the rest of a pending message is sent at once.
  private mutating func end(
    _ key: KeyIndex,
    _ target: RouteGroups.Target,
    replacedBy newer: RouteStatement,
    at now: Moment
  ) {
    updateWaiting(key) { entry in
      var entry = entry
      switch entry.content.remainder(target, replacedBy: newer) {
      case .whole: return entry
      case .part(let rest): entry.content = rest
      case .nothing: return nil
      }
      return entry
    }
    switch outputs[key].repeatable?.remainder(target, replacedBy: newer) {
    case .whole, nil: break
    case .part(let rest): outputs[key].repeatable = rest
    case .nothing: outputs[key].repeatable = nil
    }
    switch core.pending(key)?.value.remainder(target, replacedBy: newer) {
    case .whole, nil: break
    case .part(let rest):
      _ = core.cancel(key)
      queue(rest, for: key, retain: false, isPassed: false, at: now)
    case .nothing:
      _ = core.cancel(key)
      statistics.collapsed += 1
    }
  }

  /// Lets what an output has be sent before a newer message for one of its devices, if their order
  /// matters.
  private mutating func seal(
    _ key: KeyIndex,
    _ target: RouteGroups.Target,
    before newer: RouteStatement,
    at now: Moment
  ) {
    func conflicts(_ content: Content?) -> Bool {
      content.map { newer.conflicts(with: $0.statement(to: target)) } ?? false
    }
    if conflicts(core.pending(key)?.value) { flush(key, at: now) }
    if conflicts(outputs[key].repeatable) { outputs[key].inFlight?.isSealed = true }
    outputs[key].waiting.update { entry in
      var entry = entry
      if conflicts(entry.content) { entry.isSealed = true }
      return entry
    }
  }

  /// Changes what waits for the broker; what is removed counts as replaced.
  private mutating func updateWaiting(_ key: KeyIndex, _ change: (Entry) -> Entry?) {
    let before = outputs[key].waiting.count
    outputs[key].waiting.update(change)
    let removed = before - outputs[key].waiting.count
    waitingCount -= removed
    statistics.collapsed += UInt64(removed)
  }
}

extension RouteMachine.Content {
  /// What is left of a message that something newer replaces.
  enum Remainder {
    case whole
    case part(RouteMachine.Content)
    case nothing
  }

  /// What it says to the devices that it reaches.
  func statement(to target: RouteGroups.Target) -> RouteStatement {
    RouteStatement(stated(as: target.property), isPart: target.isPart)
  }

  /// What `newer` leaves of it; a payload that is not merged is left whole or not at all.
  func remainder(_ target: RouteGroups.Target, replacedBy newer: RouteStatement) -> Remainder {
    guard !target.isPart, let members = stated(as: target.property) else { return .whole }
    guard let rest = newer.remainder(of: members) else { return .nothing }
    guard rest.count < members.count, case .members = body else { return .whole }
    var content = self
    content.body = .members(rest)
    return .part(content)
  }

  /// The members that it sets; `nil` if that is not known.
  private func stated(as property: String?) -> [JSONValue.Member]? {
    switch (body, property) {
    case (.members(let members), nil): members
    case (.members(let members), let property?): [.init(property, .object(members))]
    case (.bytes(let bytes), nil):
      if case .object(let members)? = document { members } else { Self.state(of: bytes) }
    case (.bytes(let bytes), let property?):
      [.init(property, document ?? .string(Text.of(bytes.span)))]
    }
  }

  /// A payload that is only a word is the state.
  ///
  /// Source: `parsePayload` in lib/extension/publish.ts of Zigbee2MQTT.
  private static func state(of bytes: [UInt8]) -> [JSONValue.Member]? {
    let word = Text.of(bytes.span)
    let words = ["on", "off", "toggle", "open", "close", "stop", "lock", "unlock"]
    return words.contains(word.lowercased()) ? [.init("state", .string(word))] : nil
  }
}

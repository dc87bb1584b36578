// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON

/// Rewrites announcements to Home Assistant, so that commands take the routes and every entity is
/// the one that it was before Zigbee2MQTT moved to another base topic.
///
/// Names and the topics of states stay. Source of what names the base topic: `discover`,
/// `getDevicePayload` and `getDiscoveryTopic` in lib/extension/homeassistant.ts of Zigbee2MQTT.
struct AnnouncementRewriter {
  /// The inputs of routes for commands, and where they lead.
  private let commands: [(from: String, to: String)]
  /// The inputs of routes with a will, and the topics that say offline once the gateway is gone.
  private let wills: [(from: String, to: String)]
  /// The base topics of Zigbee2MQTT, and those that it had.
  private let bases: [Base]

  /// A base topic as Zigbee2MQTT has it in identifiers.
  private struct Base {
    let now: String
    let before: String

    /// `getEncodedBaseTopic`: the codes of its characters.
    static func encoded(_ base: String) -> String { base.utf16.map { String($0) }.joined() }
  }

  /// `commands` are the routes to where announcements come from, `reports` those from there.
  init(commands: [RouteConfiguration], reports: [RouteConfiguration]) {
    self.commands = commands.map { ($0.from.topic, $0.to.topic) }
    wills = reports.filter { $0.will != nil }.map { ($0.from.topic, $0.to.topic) }
    let ending = "/+/set"
    bases = self.commands.compactMap { route in
      guard route.from.hasSuffix(ending), route.to.hasSuffix(ending) else { return nil }
      return Base(
        now: String(route.to.dropLast(ending.count)),
        before: String(route.from.dropLast(ending.count))
      )
    }
  }

  /// Whether a topic is one of an announcement.
  static func isAnnouncement(_ topic: String) -> Bool { topic.hasSuffix("/config") }

  /// The topic that an announcement had before: `light/ENCODED_7/light/config` of a group.
  func topic(_ topic: String) -> String {
    topic.split(separator: "/", omittingEmptySubsequences: false).map { level in
      for base in bases where level.hasPrefix(Base.encoded(base.now) + "_") {
        return Base.encoded(base.before) + level.dropFirst(Base.encoded(base.now).count)
      }
      return String(level)
    }.joined(separator: "/")
  }

  /// The announcement as it was before, with commands to the routes; `nil` if it is no object.
  func rewritten(_ announcement: JSONValue) -> JSONValue? {
    guard case .object(let members) = announcement else { return nil }
    return .object(rewritten(members, base: nil, isCovered: false))
  }

  /// `isCovered` states whether the whole message has an availability for its components.
  private func rewritten(
    _ members: [JSONValue.Member],
    base: String?,
    isCovered: Bool
  ) -> [JSONValue.Member] {
    let base = members.last { $0.name == "~" }?.value.string ?? base
    let hasOwn = members.contains { Self.availability.contains($0.name) }
    var isCommanded = false
    let result = members.map { member -> JSONValue.Member in
      switch (member.name, member.value) {
      case (let name, .string(let topic)) where Self.isCommandTopic(name):
        guard let input = input(to: Self.expanded(topic, base)) else { return member }
        isCommanded = true
        return .init(name, .string(input))
      case ("unique_id", let id), ("uniq_id", let id), ("group", let id):
        return .init(member.name, id.mapTexts(entity))
      case ("device", .object(let device)), ("dev", .object(let device)):
        return .init(member.name, .object(device.map { .init($0.name, former($0)) }))
      case ("components", .object(let components)), ("cmps", .object(let components)):
        return .init(
          member.name,
          .object(components.map { component($0, base: base, isCovered: isCovered || hasOwn) })
        )
      default: return member
      }
    }
    return joined(result, base: base, isNeeded: isCommanded && !isCovered)
  }

  private func component(
    _ component: JSONValue.Member,
    base: String?,
    isCovered: Bool
  ) -> JSONValue.Member {
    guard case .object(let members) = component.value else { return component }
    return .init(
      component.name,
      .object(rewritten(members, base: base, isCovered: isCovered))
    )
  }

  // MARK: - Identifiers

  /// The identifier of an entity: `0x1_light_BASE`.
  private func entity(_ id: String) -> String {
    for base in bases where id.hasSuffix("_" + base.now) {
      return id.dropLast(base.now.count) + base.before
    }
    return id
  }

  /// A member of a device: of its identifiers a group's is `zigbee2mqtt_ENCODED_7`.
  private func former(_ member: JSONValue.Member) -> JSONValue {
    guard ["identifiers", "ids", "via_device"].contains(member.name) else { return member.value }
    return member.value.mapTexts { id in
      for base in bases where id.hasPrefix("zigbee2mqtt_\(Base.encoded(base.now))_") {
        let rest = id.dropFirst("zigbee2mqtt_".count + Base.encoded(base.now).count)
        return "zigbee2mqtt_\(Base.encoded(base.before))\(rest)"
      }
      return id
    }
  }

  // MARK: - Availability

  private static let availability = [
    "availability", "avty", "availability_topic", "avty_t",
  ]
  /// What belongs to `availability_topic`, and the same in a list.
  private static let parts = [
    "availability_topic": "topic", "avty_t": "topic", "availability_template": "value_template",
    "avty_tpl": "value_template", "payload_available": "payload_available",
    "pl_avail": "payload_available", "payload_not_available": "payload_not_available",
    "pl_not_avail": "payload_not_available",
  ]
  /// Reads the state of the bridge in both of its forms, a word and an object.
  private static let template: JSONValue =
    "{{ value_json.state if value_json is defined else value }}"

  /// Adds to the availability what the gateway forwards of the bridge.
  ///
  /// Without the gateway commands would be lost. `isNeeded`: also if there is no availability.
  private func joined(
    _ members: [JSONValue.Member],
    base: String?,
    isNeeded: Bool
  ) -> [JSONValue.Member] {
    let place = members.firstIndex { $0.name == "availability" || $0.name == "avty" }
    var sources: [JSONValue] = []
    if let place {
      switch members[place].value {
      case .array(let elements): sources = elements
      case .object, .string, .boolean, .integer, .number, .null: sources = [members[place].value]
      }
    }
    let own = members.filter { Self.parts[$0.name] == "topic" }
    if !own.isEmpty {
      sources.append(
        .object(
          members.compactMap { member in
            Self.parts[member.name].map { JSONValue.Member($0, member.value) }
          }
        )
      )
    }
    let topics = sources.compactMap { ($0["topic"] ?? $0["t"])?.string }
      .map { Self.expanded($0, base) }
    guard isNeeded || !topics.isEmpty,
      let will = wills.first(where: { topics.contains($0.from) }) ?? (isNeeded ? wills.first : nil),
      !topics.contains(will.to)
    else { return members }
    sources.append(.object(["topic": .string(will.to), "value_template": Self.template]))
    var result = members.filter {
      !Self.availability.contains($0.name) && !["availability_mode", "avty_mode"].contains($0.name)
        && (own.isEmpty || Self.parts[$0.name] == nil)
    }
    result.append(.init("availability", .array(sources)))
    result.append(.init("availability_mode", "all"))
    return result
  }

  // MARK: - Topics

  /// Home Assistant's names of members with command topics, and their short forms.
  private static func isCommandTopic(_ name: String) -> Bool {
    ["command_topic", "cmd_t", "set_position_topic", "set_pos_t"].contains(name)
      || name.hasSuffix("_command_topic") || name.hasSuffix("_cmd_t")
  }

  /// The topic with `~` at its start or end replaced by the base.
  private static func expanded(_ topic: String, _ base: String?) -> String {
    guard let base else { return topic }
    if topic.hasPrefix("~") { return base + topic.dropFirst() }
    if topic.hasSuffix("~") { return topic.dropLast() + base }
    return topic
  }

  /// The topic that a route leads to `topic`; `nil` if none does.
  private func input(to topic: String) -> String? {
    guard Topic.problem(inName: topic) == nil else { return nil }
    for route in commands {
      if let captures = Topic.captures(filter: route.to, name: topic) {
        return Topic.fill(template: route.from, with: captures)
      }
    }
    return nil
  }
}

extension JSONValue {
  /// A text, or the texts of a list, changed.
  fileprivate func mapTexts(_ change: (String) -> String) -> JSONValue {
    switch self {
    case .string(let text): .string(change(text))
    case .array(let elements): .array(elements.map { $0.mapTexts(change) })
    case .null, .boolean, .integer, .number, .object: self
    }
  }
}

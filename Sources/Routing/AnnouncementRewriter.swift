// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON

/// Rewrites announcements to Home Assistant, so that commands take the routes.
///
/// Only command topics change, each to the input of the route that leads to it. Everything else
/// stays: identifiers, names, and the topics of states and availability.
struct AnnouncementRewriter {
  /// The inputs of routes, and where they lead.
  private let routes: [(from: String, to: String)]

  init(_ routes: [(from: String, to: String)]) { self.routes = routes }

  /// Whether a topic is one of an announcement.
  static func isAnnouncement(_ topic: String) -> Bool { topic.hasSuffix("/config") }

  /// The announcement with its command topics rewritten; `nil` if it is no object.
  func rewritten(_ announcement: JSONValue) -> JSONValue? {
    guard case .object(let members) = announcement else { return nil }
    return .object(rewritten(members, base: nil))
  }

  private func rewritten(_ members: [JSONValue.Member], base: String?) -> [JSONValue.Member] {
    let base = members.last { $0.name == "~" }?.value.string ?? base
    return members.map { member in
      switch member.value {
      case .string(let topic) where Self.isCommandTopic(member.name):
        return input(to: Self.expanded(topic, base)).map { .init(member.name, .string($0)) }
          ?? member
      case .object(let components) where member.name == "cmps" || member.name == "components":
        return .init(member.name, .object(components.map { component($0, base: base) }))
      default: return member
      }
    }
  }

  private func component(_ component: JSONValue.Member, base: String?) -> JSONValue.Member {
    guard case .object(let members) = component.value else { return component }
    return .init(component.name, .object(rewritten(members, base: base)))
  }

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
    for route in routes {
      if let captures = Topic.captures(filter: route.to, name: topic) {
        return Topic.fill(template: route.from, with: captures)
      }
    }
    return nil
  }
}

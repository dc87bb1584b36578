// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import LastOut
internal import Values

/// Reads `topic` and `profile` of a group: how one message for all members is built.
struct GroupTopicReader {
  /// How values of one property are sent.
  private struct Sending: Equatable {
    let command: CommandEndpoint
    let wire: WireRule
  }

  let section: Section
  let members: [Device]
  /// The group, as in `group 'downstairs'`.
  let what: String
  let problems: Problems

  /// Adds what the group's own messages need to `group`.
  ///
  /// Reports a mistake and leaves the group as it is, whose members get a message each.
  func complete(_ group: inout Device, with decoder: DeviceDecoder) {
    guard section.text("topic") != nil, let node = section["topic"] else {
      return checkProfileHasTopic()
    }
    guard haveOneLane(node) else { return }
    let profile = section["profile"]
    let found =
      if let profile { ofProfile(profile, topic: node, decoder) } else {
        ofMembers(group.properties, topic: node, decoder)
      }
    guard let found else { return }
    for place in group.properties.indices {
      guard let sending = found[group.properties[place].id] else { continue }
      group.properties[place].command = sending.command
      group.properties[place].wire = sending.wire
    }
    guard checkTopics(of: group, at: (profile ?? node).position) else { return }
    warnAboutPolicies(of: group, at: node)
    group.lane = members[0].lane
    group.merge = members.allSatisfy(\.merge)
  }

  /// Checks what does not depend on the members, which have a mistake.
  static func checkAlone(_ section: Section, what: String, with decoder: DeviceDecoder) {
    let reader = Self(section: section, members: [], what: what, problems: decoder.problems)
    guard section.text("topic") != nil, let node = section["topic"] else {
      return reader.checkProfileHasTopic()
    }
    if let profile = section["profile"] { _ = reader.ofProfile(profile, topic: node, decoder) }
  }

  private func checkProfileHasTopic() {
    guard let profile = section["profile"] else { return }
    problems.add(
      profile.position,
      "profile: it says how messages on the group's own topic are built, and \(what) has no "
        + "'topic'"
    )
  }

  /// One message takes one token and one place, in one lane.
  private func haveOneLane(_ node: YAMLNode) -> Bool {
    guard let other = members.first(where: { $0.lane != members[0].lane }) else { return true }
    let lanes = [members[0], other].map { "\($0.id): \($0.lane ?? "none")" }
    problems.add(
      node.position,
      "topic: the members of \(what) are in different lanes (\(Section.list(lanes))); one message "
        + "takes its turn in one lane, so give all members the same"
    )
    return false
  }

  /// How a profile sends the values of a device with the group's topic; `nil` after a mistake.
  private func ofProfile(
    _ profile: YAMLNode,
    topic: YAMLNode,
    _ decoder: DeviceDecoder
  ) -> [String: Sending]? {
    guard let name = section.text("profile"),
      decoder.profiles.chain(from: name, at: profile.position) != nil
    else { return nil }
    let pair = YAMLNode.Pair(key: "profile", keyPosition: profile.position, value: profile)
    let node = YAMLNode(.mapping([pair]), at: profile.position)
    let entry = DeviceEntry(
      pair: .init(key: "group", keyPosition: profile.position, value: node)
    )
    return sendings(of: entry, topic: topic, decoder, at: profile.position)
  }

  /// How the members would send their values with the group's topic in place of their own; `nil`
  /// after a mistake.
  private func ofMembers(
    _ properties: [Property],
    topic: YAMLNode,
    _ decoder: DeviceDecoder
  ) -> [String: Sending]? {
    var common: [String: Sending] = [:]
    for member in members {
      guard let entry = decoder.entries[member.id],
        let sendings = sendings(of: entry, topic: topic, decoder, at: topic.position)
      else { return nil }
      for property in properties {
        guard let sending = sendings[property.id] else { continue }
        guard common.updateValue(sending, forKey: property.id) ?? sending == sending else {
          problems.add(
            topic.position,
            "topic: \(members[0].id) and \(member.id) build their messages of '\(property.id)' "
              + "differently; add 'profile: …', which says how \(what) builds them"
          )
          return nil
        }
      }
    }
    return common
  }

  /// How a device would send its values with the group's topic, by property; `nil` after a mistake,
  /// which is reported at `position`.
  private func sendings(
    of entry: DeviceEntry,
    topic: YAMLNode,
    _ decoder: DeviceDecoder,
    at position: SourcePosition
  ) -> [String: Sending]? {
    let scratch = Problems()
    let decoder = DeviceDecoder(
      context: decoder.context,
      profiles: decoder.profiles,
      problems: scratch
    )
    let device = entry.device(withTopic: topic, decoder)
    if !scratch.errors.isEmpty {
      // A member's own mistakes are reported already.
      if let problem = scratch.errors.first(where: { !problems.errors.contains($0) }) {
        problems.add(position, problem.message, suggestion: problem.suggestion)
      }
      return nil
    }
    return device.map { device in
      Dictionary(
        device.properties.map { ($0.id, Sending(command: $0.command, wire: $0.wire)) }
      ) { first, _ in first }
    }
  }

  /// Whether the messages go to other topics than those of single members.
  private func checkTopics(of group: Device, at position: SourcePosition) -> Bool {
    for property in group.properties where !property.command.topic.isEmpty {
      let member = members.first { member in
        member.properties.contains { $0.command.topic == property.command.topic }
      }
      guard let member else { continue }
      problems.add(
        position,
        "topic: '\(property.id)' would be sent to '\(Excerpt.of(property.command.topic))', which is "
          + "\(member.id)'s own; \(what) needs a topic that the bridge passes on to all members, and "
          + "command topics with '$topic' or a 'profile' that has them"
      )
      return false
    }
    guard group.properties.allSatisfy({ $0.command.topic.isEmpty }) else { return true }
    problems.add(
      position,
      "profile: it has none of the properties of \(what): \(Section.list(group.properties.map(\.id)))"
    )
    return false
  }

  /// Members that settle at different times are sent one by one.
  private func warnAboutPolicies(of group: Device, at node: YAMLNode) {
    for property in group.properties where !property.command.topic.isEmpty {
      let policies = members.compactMap { member in
        member.properties.first { $0.id == property.id }.map { (member.id, $0.policy) }
      }
      guard let first = policies.first,
        let other = policies.first(where: { $0.1 != first.1 })
      else { continue }
      problems.warn(
        node.position,
        "topic: '\(property.id)' of \(first.0) and \(other.0) settles by different policies, so a "
          + "change of \(what) is mostly sent to each member alone"
      )
    }
  }
}

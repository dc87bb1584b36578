// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// A group that a bridge has announced, and all of whose members are in device files.
package struct BridgeGroup: Hashable, Sendable {
  /// The identifier of its entry in the files.
  package let id: String
  /// The base of its topics, such as `zigbee2mqtt/downstairs`.
  package let topic: String
  /// The base of the topics of each member, by its identifier.
  package let members: [String: String]
}

/// Decides which announced groups become entries of `groups:`, and which remain devices.
struct ImportedGroups {
  /// The result, with identifiers.
  struct Sorted {
    var devices: [FileDevice] = []
    var groups: [FileDevice] = []
    /// The groups all of whose members are in device files.
    var bridgeGroups: [BridgeGroup] = []
    var diagnostics: [ImportDiagnostic] = []
  }

  /// All announced devices and groups.
  let all: [ImportedDevice]
  /// The identifiers in other files, by identity.
  let owners: [String: String]
  /// The devices and groups with mistakes, by identifier.
  let rejected: [String: String]
  /// What the last import wrote.
  let record: ImportRecord

  /// Gives each of `devices` its identifier; `known` has those of earlier imports as devices.
  func sorted(
    _ devices: [ImportedDevice],
    known: [String: String],
    _ numbering: inout DeviceNumbering
  ) -> Sorted {
    var sorted = Sorted()
    var identifiers = owners
    // A group that was imported as a device remains one.
    let isCandidate = { (device: ImportedDevice) in
      !device.members.isEmpty && known[device.identity] == nil
    }
    for device in devices where !isCandidate(device) {
      let id = sorted.add(device, &numbering)
      if rejected[id] == nil { identifiers[device.identity] = id }
    }
    let fields = GroupFields(
      identifiers: identifiers,
      devices: Dictionary(all.map { ($0.identity, $0) }) { first, _ in first }
    )
    for group in devices where isCandidate(group) {
      if record.groupIdentifiers[group.identity] == nil,
        let reason = reasonForDevice(group, fields)
      {
        sorted.add(group, &numbering)
        sorted.report(group, "imported as a device, not as a group: \(reason)")
        continue
      }
      let id = numbering.id(for: group)
      sorted.groups.append(
        FileDevice(
          id: id,
          identity: group.identity,
          comment: "",
          members: fields.entry(of: group, id: id)
        )
      )
      let missing = fields.missing(of: group)
      if missing.isEmpty, let topic = group.topic {
        let members = fields.topics(ofMembersOf: group)
        sorted.bridgeGroups.append(BridgeGroup(id: id, topic: topic, members: members))
      } else if !missing.isEmpty {
        sorted.report(
          group,
          "messages to the group reach members that are not imported too: "
            + missing.joined(separator: ", ")
        )
      }
    }
    // In the order of names, as they were announced.
    let order = Dictionary(devices.enumerated().map { ($1.identity, $0) }) { first, _ in first }
    sorted.devices.sort { order[$0.identity] ?? 0 < order[$1.identity] ?? 0 }
    return sorted
  }

  /// Why an entry of `groups:` would not do; `nil` if it does.
  private func reasonForDevice(_ group: ImportedDevice, _ fields: GroupFields) -> String? {
    if fields.members(of: group).isEmpty { return "none of its members is imported" }
    if group.profile == group.plainProfile {
      return "there is no profile for what its members have in common"
    }
    let foreign = fields.foreignProperties(of: group)
    return foreign.isEmpty
      ? nil : "its members do not all have \(foreign.joined(separator: ", "))"
  }
}

extension ImportedGroups.Sorted {
  /// Adds a device and returns its identifier.
  @discardableResult
  fileprivate mutating func add(
    _ device: ImportedDevice,
    _ numbering: inout DeviceNumbering
  ) -> String {
    let id = numbering.id(for: device)
    devices.append(
      FileDevice(
        id: id,
        identity: device.identity,
        comment: device.comment,
        members: DeviceFields.members(of: device, id: id),
        properties: Set(device.properties.map(\.id))
      )
    )
    return id
  }

  fileprivate mutating func report(_ group: ImportedDevice, _ reason: String) {
    diagnostics.report(
      .partly,
      PlainText.clean(group.name, limit: 80),
      PlainText.clean(reason, limit: 4000)
    )
  }
}

/// Converts an announced group to an entry of `groups:`.
struct GroupFields {
  /// The identifiers of announced devices in device files, by identity.
  let identifiers: [String: String]
  /// The announced devices, by identity.
  let devices: [String: ImportedDevice]

  /// The identifiers of its members, in the announced order, each once.
  func members(of group: ImportedDevice) -> [String] {
    var seen: Set<String> = []
    return group.members.compactMap { identifiers[$0] }.filter { seen.insert($0).inserted }
  }

  /// The bases of its members' topics, by identifier; empty where one is not known.
  func topics(ofMembersOf group: ImportedDevice) -> [String: String] {
    var topics: [String: String] = [:]
    for member in group.members {
      guard let id = identifiers[member], let topic = devices[member]?.topic else { return [:] }
      topics[id] = topic
    }
    return topics
  }

  /// The members that are in no device file.
  func missing(of group: ImportedDevice) -> [String] {
    group.members.filter { identifiers[$0] == nil }.map { devices[$0]?.name ?? $0 }
  }

  /// The properties of the bridge's group that not all members have, by the same identifier and
  /// type.
  ///
  /// So it is with a group of endpoints, whose members have `power_l1` where the group has `power`.
  func foreignProperties(of group: ImportedDevice) -> [String] {
    let members = group.members.filter { identifiers[$0] != nil }.compactMap { devices[$0] }
    return group.properties.filter { property in
      !members.allSatisfy { member in
        member.properties.contains {
          $0.id == property.id && $0["type"] == property["type"] && !$0.isReadOnly
        }
      }
    }.map(\.id)
  }

  /// The keys and values of the entry, in the order of the file.
  ///
  /// The profile says how messages to the group are built, because members may build theirs
  /// differently.
  func entry(of group: ImportedDevice, id: String) -> [JSONValue.Member] {
    var members = group.head(id: id)
    members.append(.init("members", .array(self.members(of: group).map { .string($0) })))
    if let topic = group.topic { members.append(.init("topic", .string(topic))) }
    if let profile = group.profile { members.append(.init("profile", .string(profile))) }
    return members
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

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

  /// The members that are in no device file.
  func missing(of group: ImportedDevice) -> [String] {
    group.members.filter { identifiers[$0] == nil }.map { devices[$0]?.name ?? $0 }
  }

  /// The properties of the bridge's group that not all members have, by the same identifier and type.
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
  /// The profile says how messages to the group are built, because members may build theirs differently.
  func entry(of group: ImportedDevice, id: String) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    let name = PlainText.clean(group.name)
    if name != id, !name.isEmpty { members.append(.init("name", .string(name))) }
    if let area = group.area.map({ PlainText.clean($0) }), !area.isEmpty {
      members.append(.init("area", .string(area)))
    }
    let details = group.details.members
    if !details.isEmpty { members.append(.init("device", .object(details))) }
    members.append(.init("members", .array(self.members(of: group).map { .string($0) })))
    if let topic = group.topic { members.append(.init("topic", .string(topic))) }
    if let profile = group.profile { members.append(.init("profile", .string(profile))) }
    return members
  }
}

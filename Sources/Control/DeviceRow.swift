// Settle
// SPDX-License-Identifier: Apache-2.0

/// One line of `devices`: a device, its properties, and whether it is online.
package struct DeviceRow: ListedObject, Hashable, Sendable {
  package enum Availability: String, Hashable, Sendable {
    case online, offline
    /// The device has no topic that says so, or none has said anything.
    case unknown
  }

  package var id = ""
  package var name = ""
  /// Where it is; `nil` if nothing says so.
  package var area: String?
  package var lane: String?
  /// The ids of its properties, in order of definition.
  package var properties: [String] = []
  /// Their types, in the same order.
  package var types: [String] = []
  /// The ids of those that only the device changes.
  package var readOnly: [String] = []
  package var availability = Availability.unknown
  /// How long it has been offline, if that is known.
  package var awayMilliseconds: Int?
  /// The ids of a group's members; empty for a device of its own.
  package var members: [String] = []
  /// Whether one of its properties was ever reported, or none has a state topic.
  package var isHeard = true
  /// Whether it sleeps: values wait until it reports itself.
  package var sleeps = false
  /// Why nothing can be sent to it at the moment; `nil` if it can.
  package var obstacle: String?
  /// The topic that its commands share, or the levels that their topics share, followed by `/…`.
  package var topic = ""

  package init() {}

  package mutating func list(_ members: inout MemberList) {
    members.text("device", &id, isNeeded: true)
    members.text("name", &name)
    members.text("area", &area)
    members.text("lane", &lane)
    members.texts("properties", &properties)
    members.texts("types", &types)
    members.texts("read_only", &readOnly)
    members.word("availability", &availability)
    members.count("away_ms", &awayMilliseconds)
    members.flag("sleeps", &sleeps)
    members.text("obstacle", &obstacle)
    members.texts("members", &self.members)
    members.text("topic", &topic)
    members.flag("heard", &isHeard, usual: true)
    if name.isEmpty { name = id }
  }

  /// Whether it is in an area; see ``AreaName``.
  package func isIn(_ area: String) -> Bool {
    self.area.map { AreaName.word($0) == AreaName.word(area) } ?? false
  }

  /// The areas of devices, each once, in order.
  package static func areas(of rows: [DeviceRow]) -> [String] {
    var seen: Set<String> = []
    return rows.compactMap(\.area).filter { seen.insert(AreaName.word($0)).inserted }.sorted()
  }

  /// What topics have in common: the topic if it is the same, else their shared levels and `/…`.
  package static func shared(_ topics: some Sequence<String>) -> String {
    var common: [Substring]?
    var isSame = true
    for topic in topics {
      let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
      guard let known = common else {
        common = levels
        continue
      }
      let shared = zip(known, levels).prefix { $0 == $1 }.map(\.0)
      if shared.count < known.count || shared.count < levels.count { isSame = false }
      common = shared
    }
    guard let common else { return "" }
    return isSame ? common.joined(separator: "/") : (common + ["…"]).joined(separator: "/")
  }
}

/// Compares the names of areas as people type them.
package enum AreaName {
  /// The name as one word in small letters: `Living room` becomes `living-room`.
  ///
  /// Names with the same word name the same area.
  package static func word(_ name: String) -> String {
    name.lowercased().split { !$0.isLetter && !$0.isNumber }.joined(separator: "-")
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON

/// One line of `devices`: a device, its properties, and whether it is online.
package struct DeviceRow: Hashable, Sendable {
  package enum Availability: String, Hashable, Sendable {
    case online, offline
    /// The device has no topic that says so, or none has said anything.
    case unknown
  }

  package var id: String
  package var name: String
  /// Where it is; `nil` if nothing says so.
  package var area: String?
  package var lane: String?
  /// The ids of its properties, in order of definition.
  package var properties: [String]
  /// Their types, in the same order.
  package var types: [String]
  /// The ids of those that only the device changes.
  package var readOnly: [String] = []
  package var availability: Availability
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
  package var topic: String

  package init(
    id: String,
    name: String,
    properties: [String],
    types: [String],
    availability: Availability,
    topic: String
  ) {
    self.id = id
    self.name = name
    self.properties = properties
    self.types = types
    self.availability = availability
    self.topic = topic
  }

  package var json: JSONValue {
    guard case .object(let members) = row, !isHeard else { return row }
    return .object(members + [.init("heard", false)])
  }

  private var row: JSONValue {
    .object([
      "device": .string(id), "name": .string(name), "area": .text(area), "lane": .text(lane),
      "properties": .texts(properties), "types": .texts(types), "read_only": .texts(readOnly),
      "availability": .string(availability.rawValue), "away_ms": .count(awayMilliseconds),
      "sleeps": .boolean(sleeps), "obstacle": .text(obstacle), "members": .texts(members),
      "topic": .string(topic),
    ])
  }

  /// Reads a row; `nil` without an id.
  package init?(_ json: JSONValue) {
    guard let id = json["device"]?.string else { return nil }
    self.init(
      id: id,
      name: json["name"]?.string ?? id,
      properties: json.texts("properties"),
      types: json.texts("types"),
      availability: json["availability"]?.string.flatMap(Availability.init) ?? .unknown,
      topic: json["topic"]?.string ?? ""
    )
    area = json["area"]?.string
    readOnly = json.texts("read_only")
    lane = json["lane"]?.string
    awayMilliseconds = json["away_ms"]?.count
    sleeps = json["sleeps"] == true
    isHeard = json["heard"] != false
    obstacle = json["obstacle"]?.string
    members = json.texts("members")
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

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// The features that all members of a group share, as exposes without endpoints.
enum GroupExposes {
  /// The kinds of devices that Zigbee groups support.
  private static let kinds = ["light", "switch", "cover", "lock"]
  private static let features: Set = [
    "state", "brightness", "color_temp", "color_xy", "color_hs", "position", "tilt",
  ]

  /// The features that every member has, with the range that all of them accept.
  static func common(to members: [[JSONValue]]) -> [JSONValue] {
    for kind in kinds {
      let lists = members.map { features(of: kind, in: $0) }
      guard let first = lists.first, lists.allSatisfy({ !$0.isEmpty }) else { continue }
      let common = first.compactMap { feature -> JSONValue? in
        let others = lists.dropFirst().map { list in
          list.first { $0["name"] == feature["name"] && $0["type"] == feature["type"] }
        }
        let present = others.compactMap(\.self)
        return present.count == others.count ? narrowed(feature, by: present) : Optional.none
      }
      if common.isEmpty { continue }
      return [.object(["type": .string(kind), "features": .array(common)])]
    }
    return []
  }

  /// The features of one kind.
  ///
  /// A lamp counts as a switch too, because it can be switched.
  private static func features(of kind: String, in exposes: [JSONValue]) -> [JSONValue] {
    let owners =
      exposes.first { $0["type"]?.string == kind }
      ?? (kind == "switch" ? exposes.first { $0["type"]?.string == "light" } : Optional.none)
    return (owners?.elements("features") ?? []).compactMap { feature in
      guard let name = feature["name"]?.string, features.contains(name),
        kind != "switch" || name == "state", var members = feature.members
      else { return Optional.none }
      members.removeAll { $0.name == "endpoint" || $0.name == "property" }
      let property = name.hasPrefix("color_") && name != "color_temp" ? "color" : name
      members.append(.init("property", .string(property)))
      return .object(members)
    }
  }

  private static func narrowed(_ feature: JSONValue, by others: [JSONValue]) -> JSONValue? {
    guard var members = feature.members else { return Optional.none }
    for (name, isNarrower) in [
      ("value_min", { (new: Double, old: Double) in new > old }), ("value_max", { $0 < $1 }),
    ] {
      for other in others {
        guard let bound = other[name]?.double,
          let index = members.firstIndex(where: { $0.name == name }),
          let known = members[index].value.double
        else { continue }
        if isNarrower(bound, known) { members[index].value = JSONValue(shortest: bound) }
      }
    }
    return .object(members)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON

/// One entity of Home Assistant.
struct Entity {
  /// The type in Home Assistant, such as `light` or `number`.
  let platform: String
  /// The identifier of the property, or of the main one of several; unique in its device.
  let name: String
  /// The display name; `nil` for the name of the device.
  var title: String?
  /// `config` where the entity sets up its device, `diagnostic` where it is about the device itself;
  /// `nil` where it is what the device is for.
  var category: String?
  /// The topics, payloads and options in the announcement.
  var fields: [JSONValue.Member]

  /// All members of the announcement.
  func members(of device: Device, base: String) -> [JSONValue.Member] {
    [
      .init("p", .string(platform)),
      .init("unique_id", .string(Self.uniqueID(base, device.id, name))),
      .init("name", title.map { .string($0) } ?? .null),
    ] + (category.map { [.init("entity_category", .string($0))] } ?? []) + fields
  }

  /// Joins parts to an identifier of letters, digits, `_` and `-`.
  static func uniqueID(_ parts: String...) -> String {
    let text = parts.joined(separator: "_")
    return String(
      text.unicodeScalars.map { scalar in
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "-": Character(scalar)
        default: "_"
        }
      }
    )
  }
}

extension Property {
  /// The display name, derived from the identifier if none is set.
  var title: String {
    name ?? Self.title(of: id)
  }

  /// An identifier as words: `target_temperature` becomes `Target temperature`.
  static func title(of id: String) -> String {
    let words = id.split(whereSeparator: { $0 == "_" || $0 == "-" }).joined(separator: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }
}

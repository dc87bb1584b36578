// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON

/// One thing that Home Assistant shows.
struct Entity {
  /// What it is there, such as `light` or `number`.
  let platform: String
  /// The property it is made of, or the first of several; unique in its device.
  let name: String
  /// What people read; `nil`: what the device is called.
  let title: String?
  /// Topics and what goes with them.
  var facts: [JSONValue.Member]

  /// Everything, as the announcement has it.
  func members(of device: Device, base: String) -> [JSONValue.Member] {
    [
      .init("p", .string(platform)),
      .init("unique_id", .string(Self.uniqueID(base, device.id, name))),
      .init("name", title.map { .string($0) } ?? .null),
    ] + facts
  }

  /// An identifier of letters, digits, `_` and `-` that no other gateway uses.
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
  /// What people read, made from the identifier if need be: `target_temperature` becomes
  /// `Target temperature`.
  var title: String {
    if let name { return name }
    let words = id.split(whereSeparator: { $0 == "_" || $0 == "-" }).joined(separator: " ")
    return words.prefix(1).uppercased() + words.dropFirst()
  }

  /// Whether it is called one of these, by itself or by an alias.
  func isCalled(_ names: Set<String>) -> Bool {
    names.contains(id) || aliases.contains { names.contains($0) }
  }
}

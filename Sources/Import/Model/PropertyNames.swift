// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
import Values

/// Assigns valid and unique identifiers to the properties of one device.
struct PropertyNames {
  private var taken: Set<String> = []

  init() {}

  /// Reserves an identifier that is similar to `wanted` and not in use.
  mutating func unique(_ wanted: String) -> String {
    let base = Self.allowed(wanted)
    var id = base
    var number = 2
    while !taken.insert(id).inserted {
      id = "\(base.prefix(60))_\(number)"
      number += 1
    }
    return id
  }

  /// Reserves exactly `name`; `false` if it is invalid or in use.
  mutating func reserve(_ name: String) -> Bool {
    Identifiers.problem(inProperty: name) == nil && taken.insert(name).inserted
  }

  /// Whether an identifier is in use.
  func has(_ id: String) -> Bool { taken.contains(id) }

  /// Converts a name to lowercase words joined by `_`: `Max Level` becomes `max_level`.
  static func word(_ name: String) -> String {
    DeviceSlug.slug(name).replaced("-", by: "_")
  }

  private static func allowed(_ wanted: String) -> String {
    var id = DeviceSlug.letters(of: wanted, keepingCase: true)
    id = String(
      id.unicodeScalars.prefix(60).map { scalar in
        switch scalar {
        case "a"..."z", "A"..."Z", "0"..."9", "_": Character(scalar)
        default: "_"
        }
      }
    )
    while id.last == "_" { id.removeLast() }
    id = String(id.drop { $0 == "_" })
    if id.isEmpty { id = "value" }
    return Identifiers.problem(inProperty: id) == nil ? id : "\(id)_value"
  }
}

/// Assigns identifiers to imported devices.
///
/// A device keeps the identifier of earlier imports. A new one gets the slug of its name, with a
/// number if the slug is in use.
struct DeviceNumbering {
  /// The identifiers from earlier imports, by identity.
  private let known: [String: String]
  private var taken: Set<String>

  /// `taken` has the identifiers of devices in other files.
  init(known: [String: String], taken: Set<String>) {
    self.known = known
    self.taken = taken.union(known.values)
  }

  /// Returns the identifier for a device.
  mutating func id(for device: ImportedDevice) -> String {
    if let id = known[device.identity] { return id }
    var base = DeviceSlug.slug(device.name)
    if base.isEmpty { base = DeviceSlug.slug(device.identity) }
    if base.isEmpty { base = "device" }
    var id = base
    var number = 2
    while !taken.insert(id).inserted || Identifiers.problem(inDevice: id) != nil {
      id = "\(base.prefix(56))-\(number)"
      number += 1
    }
    return id
  }
}

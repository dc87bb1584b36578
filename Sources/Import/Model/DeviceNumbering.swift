// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration

/// Gives imported devices identifiers: the ones they had, else slugs of their names, numbered where
/// they collide.
struct DeviceNumbering {
  /// By identity: the identifiers of earlier imports.
  private let known: [String: String]
  private var taken: Set<String>

  /// `taken` are identifiers of devices in other files.
  init(known: [String: String], taken: Set<String>) {
    self.known = known
    self.taken = taken.union(known.values)
  }

  /// An identifier for a device.
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

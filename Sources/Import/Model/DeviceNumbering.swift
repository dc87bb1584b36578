// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration

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

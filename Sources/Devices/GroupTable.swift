// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Which keys a group's key stands for, and which groups' keys stand for a key.
package struct GroupTable: Sendable {
  private var members: [KeyIndex: [KeyIndex]] = [:]
  private var groups: [KeyIndex: [KeyIndex]] = [:]

  /// The groups among `devices`, each with its keys; `find` returns the key of a name.
  init(
    _ devices: some Sequence<(device: Device, keys: DeviceKeys)>,
    find: (String) -> KeyIndex?
  ) {
    for (device, keys) in devices {
      guard let group = device.group else { continue }
      for (number, property) in zip(keys, device.properties) {
        let key = KeyIndex(number)
        let found = group.members.compactMap { find("\($0)/\(property.id)") }
        members[key] = found
        for member in found { groups[member, default: []].append(key) }
      }
    }
  }

  package var isEmpty: Bool { members.isEmpty }

  /// The keys of all groups.
  package var keys: [KeyIndex] { members.keys.sorted { $0.rawValue < $1.rawValue } }

  /// The keys that a group's key stands for, in order of its members; empty for any other key.
  package func members(of key: KeyIndex) -> [KeyIndex] { members[key] ?? [] }

  /// The groups' keys that stand for `key`.
  package func groups(of key: KeyIndex) -> [KeyIndex] { groups[key] ?? [] }
}

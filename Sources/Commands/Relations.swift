// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The other keys of its device that a key's commands concern.
struct Relations {
  /// The keys whose commands an urgent value of this one ends.
  private(set) var ends: [KeyIndex] = []
  /// The keys that this one replaces, or that replace this one.
  private(set) var excluded: [KeyIndex] = []
  /// The keys whose commands may be sent in one message with those of this one, which is among them;
  /// empty for a property whose commands are sent alone.
  let mergeGroup: [KeyIndex]

  /// The relations of all keys.
  static func all(in registry: Registry) -> KeyArray<Relations> {
    let related = registry.devices.map { device in
      device.properties.contains { !$0.ends.isEmpty || !$0.excludes.isEmpty }
    }
    let groups = mergeGroups(in: registry)
    return KeyArray(
      registry.properties.enumerated().map { place, entry in
        let topic = entry.property.command.topic
        let canMerge = !entry.isRetired && canMerge(entry.property)
        let group = canMerge ? groups[entry.device][topic] ?? [] : []
        let key = KeyIndex(Int32(place))
        return Relations(of: key, in: registry, isRelated: related[entry.device], group)
      }
    )
  }

  /// With `isRelated`, properties of the device name one another.
  private init(of key: KeyIndex, in registry: Registry, isRelated: Bool, _ mergeGroup: [KeyIndex]) {
    self.mergeGroup = mergeGroup
    guard isRelated else { return }
    let property = registry[key].property
    for raw in registry.indices(ofDevice: registry[key].device) where raw != key.rawValue {
      let other = registry[KeyIndex(raw)].property
      if Self.names(property.ends, other) { ends.append(KeyIndex(raw)) }
      if Self.names(property.excludes, other) || Self.names(other.excludes, property) {
        excluded.append(KeyIndex(raw))
      }
    }
  }

  /// By device and command topic, the keys that share messages; where there is only one there is
  /// nothing to share.
  private static func mergeGroups(in registry: Registry) -> [[String: [KeyIndex]]] {
    registry.devices.enumerated().map { number, device in
      guard device.merge else { return [:] }
      var groups: [String: [KeyIndex]] = [:]
      for raw in registry.indices(ofDevice: number) {
        let property = registry[KeyIndex(raw)].property
        if canMerge(property) { groups[property.command.topic, default: []].append(KeyIndex(raw)) }
      }
      return groups.filter { $0.value.count > 1 }
    }
  }

  private static func canMerge(_ property: Property) -> Bool {
    if case .action = property.kind { return false }
    return property.command.payload.isObject
  }

  private static func names(_ ids: [String], _ property: Property) -> Bool {
    ids.contains { $0 == property.id || property.aliases.contains($0) }
  }
}

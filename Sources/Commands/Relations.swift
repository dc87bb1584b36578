// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// The other keys of its device that a key's commands concern.
struct Relations {
  /// The keys whose commands an urgent value of this one ends.
  private(set) var ends: [KeyIndex] = []
  /// The keys that this one replaces, or that replace this one.
  private(set) var excluded: [KeyIndex] = []
  /// The keys that take a value when one of this key is sent.
  private(set) var implied: [(key: KeyIndex, value: Value)] = []
  /// The keys whose commands may be sent in one message with those of this one, which is among them;
  /// empty for a property whose commands are sent alone.
  private(set) var mergeGroup: [KeyIndex] = []

  /// The relations of all keys.
  static func all(in registry: Registry) -> LazyArray<Relations> {
    var all = LazyArray(repeating: Relations(), count: registry.properties.count)
    for device in registry.devices.indices { derive(ofDevice: device, in: registry, &all) }
    return all
  }

  /// Derives the relations of one device's properties; those of a removed one concern no other.
  static func derive(
    ofDevice number: Int,
    in registry: Registry,
    _ all: inout LazyArray<Relations>
  ) {
    let definition = registry.definition(ofDevice: number)
    let (isRelated, merges) = (definition.isRelated, definition.pattern.merge)
    guard isRelated || merges else { return }
    let keys = registry.indices(ofDevice: number).map { KeyIndex($0) }
    let groups = merges ? mergeGroups(of: keys, in: registry) : [:]
    for key in keys {
      if isRelated { all[key].relate(key, to: keys, in: registry) }
      if merges, canMerge(registry.definition(of: key).property) {
        all[key].mergeGroup = groups[registry[key].commandTopic] ?? []
      }
    }
  }

  private mutating func relate(_ key: KeyIndex, to keys: [KeyIndex], in registry: Registry) {
    let property = registry.definition(of: key).property
    for otherKey in keys where otherKey != key {
      let other = registry.definition(of: otherKey).property
      if Self.names(property.ends, other) { ends.append(otherKey) }
      if Self.names(property.excludes, other) || Self.names(other.excludes, property) {
        excluded.append(otherKey)
      }
      for implication in property.implies where Self.names([implication.property], other) {
        implied.append((otherKey, implication.value))
      }
    }
  }

  /// By command topic, the keys that share messages; where there is only one there is nothing to
  /// share.
  private static func mergeGroups(
    of keys: [KeyIndex],
    in registry: Registry
  ) -> [String: [KeyIndex]] {
    var groups: [String: [KeyIndex]] = [:]
    for key in keys where canMerge(registry.definition(of: key).property) {
      groups[registry[key].commandTopic, default: []].append(key)
    }
    return groups.filter { $0.value.count > 1 }
  }

  private static func canMerge(_ property: Property) -> Bool {
    if property.isAction || property.isReadOnly { return false }
    return property.command.payload.isObject
  }

  private static func names(_ ids: [String], _ property: Property) -> Bool {
    ids.contains { $0 == property.id || property.aliases.contains($0) }
  }
}

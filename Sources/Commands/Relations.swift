// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
import Values

/// Another key of a device, of which nothing older may be sent after a value.
package struct Rival: Hashable, Sendable {
  package let key: KeyIndex
  /// Whether that concerns only those of its values that would end the value: urgent ones, or a 0.
  package let isUrgentOnly: Bool

  package init(key: KeyIndex, isUrgentOnly: Bool = false) {
    self.key = key
    self.isUrgentOnly = isUrgentOnly
  }
}

/// The other keys of its device that a key's commands concern.
struct Relations {
  /// The keys whose commands an urgent value of this one ends.
  private(set) var ends: [KeyIndex] = []
  /// The keys that this one replaces, or that replace this one.
  private(set) var excluded: [KeyIndex] = []
  /// The keys of which nothing older may follow an urgent value of this one.
  private(set) var urgentRivals: [Rival] = []
  /// The keys of which nothing older may follow any other value of this one.
  private(set) var rivals: [Rival] = []
  /// The keys whose commands may be sent in one message with those of this one, which is among
  /// them; empty for a property whose commands are sent alone.
  private(set) var mergeGroup: [KeyIndex] = []
  /// The keys whose older commands leave before those of this one: those with an urgent value that
  /// ends its commands and, for an action, the other actions of its device.
  private(set) var ahead: [KeyIndex] = []
  /// The keys that this one is ahead of.
  private(set) var behind: [KeyIndex] = []
  /// The keys that take a value when one of this key is sent.
  private(set) var implied: [ImpliedValue] = []
  /// The keys that, when one of their values is sent, make this one take a value.
  private(set) var implying: [ImpliedValue] = []

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
    let keys = registry.indices(ofDevice: number).map { KeyIndex($0) }
    let actions = keys.filter { registry.definition(of: $0).property.isAction }
    for key in actions where actions.count > 1 { all[key].order(among: actions, key) }
    guard isRelated || merges else { return }
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
      let isEnded = Self.names(property.ends, other)
      let endsThis = Self.names(other.ends, property)
      let isExcluded =
        Self.names(property.excludes, other) || Self.names(other.excludes, property)
      if isEnded { ends.append(otherKey) }
      if isEnded, !behind.contains(otherKey) { behind.append(otherKey) }
      if endsThis, !ahead.contains(otherKey) { ahead.append(otherKey) }
      if isExcluded { excluded.append(otherKey) }
      let rival = Rival(key: otherKey, isUrgentOnly: !isExcluded)
      if isExcluded || endsThis { rivals.append(rival) }
      if isEnded {
        urgentRivals.append(Rival(key: otherKey, isUrgentOnly: false))
      } else if rivals.last?.key == otherKey {
        urgentRivals.append(rival)
      }
      for implication in property.implies where Self.names([implication.property], other) {
        implied.append(ImpliedValue(key: otherKey, value: implication.value))
      }
      for implication in other.implies where Self.names([implication.property], property) {
        implying.append(ImpliedValue(key: otherKey, value: implication.value))
      }
    }
  }

  /// Presses of a device leave in their order, whichever of its actions they are of.
  private mutating func order(among actions: [KeyIndex], _ key: KeyIndex) {
    ahead = actions.filter { $0 != key }
    behind = ahead
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

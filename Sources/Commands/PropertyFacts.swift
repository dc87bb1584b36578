// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
import Values

/// What decisions need of a property, worked out once.
///
/// A ``Property`` is large: copying one costs a dozen reference counts. These are plain numbers,
/// which cost nothing to read.
struct PropertyFacts {
  private struct Flags: OptionSet {
    let rawValue: UInt16
    static let isAction = Flags(rawValue: 1 << 0)
    static let hasUrgent = Flags(rawValue: 1 << 1)
    static let hasHold = Flags(rawValue: 1 << 2)
    static let canConfirm = Flags(rawValue: 1 << 3)
    static let hasExcluded = Flags(rawValue: 1 << 4)
    static let sleeps = Flags(rawValue: 1 << 5)
    static let isGroup = Flags(rawValue: 1 << 6)
    static let isMember = Flags(rawValue: 1 << 7)
    static let isReported = Flags(rawValue: 1 << 8)
    static let hasForms = Flags(rawValue: 1 << 9)
    static let isAhead = Flags(rawValue: 1 << 10)
    static let isBehind = Flags(rawValue: 1 << 11)
    static let hasImplications = Flags(rawValue: 1 << 12)
    static let travels = Flags(rawValue: 1 << 13)
  }

  // In this order and these sizes, the facts of a key take sixteen bytes.
  private let timeToLive: UInt64
  private var deviceNumber: Int32
  private var flags: Flags = []
  /// How many messages ask the device for the state.
  let requestCount: UInt8

  /// The facts of all properties.
  static func all(
    in registry: Registry,
    _ relations: LazyArray<Relations>
  ) -> KeyArray<PropertyFacts> {
    var known: [PropertyFacts?] = Array(repeating: nil, count: registry.definitionCount)
    return KeyArray(
      relations.indices.map { place in
        let key = KeyIndex(Int32(place))
        let number = registry.definitionNumber(of: key)
        var facts = known[number] ?? PropertyFacts(registry[key])
        if known[number] == nil { known[number] = facts }
        facts.deviceNumber = Int32(registry.device(of: key))
        facts.relate(relations[key], of: key, in: registry)
        return facts
      }
    )
  }

  /// The facts of a property that no other one excludes; see ``relate(_:of:in:)``.
  init(_ entry: Registry.Entry) {
    let definition = entry.definition
    deviceNumber = Int32(entry.device)
    requestCount = UInt8(clamping: definition.property.states.count { $0.get != nil })
    timeToLive = UInt64(max(definition.property.ttl.wholeNanoseconds, 0))
    let canConfirm = definition.property.confirm != nil && !definition.property.states.isEmpty
    if definition.property.isAction {
      flags.insert(.isAction)
    } else if canConfirm {
      flags.insert(.canConfirm)
    }
    if definition.property.reportSource != nil {
      flags.insert(.isReported)
      if definition.property.hasWay { flags.insert(.travels) }
    }
    let topics = definition.property.states.filter { !$0.acknowledges }.map(\.topic)
    if Set(topics).count < topics.count { flags.insert(.hasForms) }
    if !definition.property.urgent.isEmpty { flags.insert(.hasUrgent) }
    if definition.property.hold != nil { flags.insert(.hasHold) }
  }

  var device: Int { Int(deviceNumber) }
  /// Whether the key stands for momentary commands rather than a value.
  var isAction: Bool { flags.contains(.isAction) }
  var hasUrgent: Bool { flags.contains(.hasUrgent) }
  /// Whether a person's change keeps other sources away.
  var hasHold: Bool { flags.contains(.hasHold) }
  /// Whether `sent` is followed by `confirmed` or `failed`.
  var canConfirm: Bool { flags.contains(.canConfirm) }
  /// Whether ``Relations/excluded`` has keys.
  var hasExcluded: Bool { flags.contains(.hasExcluded) }
  /// Whether values of the key imply one of another key, or the other way round.
  var hasImplications: Bool { flags.contains(.hasImplications) }
  /// Whether a new value ends commands of other keys.
  var endsOthers: Bool { !flags.isDisjoint(with: [.hasExcluded, .hasImplications]) }
  /// Whether ``Relations/behind`` has keys.
  var isAhead: Bool { flags.contains(.isAhead) }
  /// Whether ``Relations/ahead`` has keys.
  var isBehind: Bool { flags.contains(.isBehind) }
  /// Whether commands wait until the device reports itself.
  var sleeps: Bool { flags.contains(.sleeps) }
  /// Whether the key stands for keys of other devices, each of which gets a command of its own.
  var isGroup: Bool { flags.contains(.isGroup) }
  /// Whether a group's key stands for this one.
  var isMember: Bool { flags.contains(.isMember) }

  /// Whether the device reports the property of its own accord.
  var isReported: Bool { flags.contains(.isReported) && !isGroup }

  /// Whether the device may report how it moves to a value; see ``Travel``.
  var travels: Bool { flags.contains(.travels) }

  /// Whether a report of one topic is read in several ways, of which one suffices.
  var hasForms: Bool { flags.contains(.hasForms) }

  /// Whether the device can be asked for the state.
  var canAsk: Bool { requestCount > 0 }

  /// Adds what follows from the property's relations and its device.
  mutating func relate(_ relations: Relations, of key: KeyIndex, in registry: Registry) {
    if !relations.excluded.isEmpty { flags.insert(.hasExcluded) }
    if !relations.implied.isEmpty || !relations.implying.isEmpty { flags.insert(.hasImplications) }
    if !relations.behind.isEmpty { flags.insert(.isAhead) }
    if !relations.ahead.isEmpty { flags.insert(.isBehind) }
    if registry.sleeps(device) { flags.insert(.sleeps) }
    if registry.isGroup(device) { flags.insert(.isGroup) }
    if !registry.groups.isEmpty, !registry.groups.groups(of: key).isEmpty {
      flags.insert(.isMember)
    }
  }

  /// Until when a value that is accepted at `now` may wait.
  func expiry(from now: Moment) -> Moment {
    let (end, isBeyond) = now.nanoseconds.addingReportingOverflow(timeToLive)
    return Moment(nanoseconds: isBeyond ? .max : end)
  }
}

/// Another key of a device, of which nothing older may be sent after a value.
package struct Rival: Hashable, Sendable {
  package let key: KeyIndex
  /// Whether that concerns only those of its values that would end the value: urgent ones, or a 0.
  package let isUrgentOnly: Bool
  /// Whether its present command agrees with the value, or is sent with it: only what that replaces
  /// may not follow.
  package var agrees = false

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

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

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

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What decisions need of a property, worked out once.
///
/// A ``Property`` is large: copying one costs a dozen reference counts. These are plain numbers, which
/// cost nothing to read.
struct PropertyFacts {
  let device: Int
  /// Whether the key stands for momentary commands rather than a value.
  let isAction: Bool
  let hasUrgent: Bool
  /// Whether a person's change keeps other sources away.
  let hasHold: Bool
  /// Whether `sent` is followed by `confirmed` or `failed`.
  let canConfirm: Bool
  /// How many messages ask the device for the state.
  let requestCount: UInt8
  /// Whether ``Relations/excluded`` has keys.
  private(set) var hasExcluded = false
  /// Whether commands wait until the device reports itself.
  private(set) var sleeps = false
  /// Whether the key stands for keys of other devices, each of which gets a command of its own.
  private(set) var isGroup = false
  /// Whether a group's key stands for this one.
  private(set) var isMember = false
  private let timeToLive: UInt64

  /// The facts of all properties.
  static func all(
    in registry: Registry,
    _ relations: LazyArray<Relations>
  ) -> KeyArray<PropertyFacts> {
    KeyArray(
      relations.indices.map { place in
        let key = KeyIndex(Int32(place))
        var facts = PropertyFacts(registry[key])
        facts.relate(relations[key], of: key, in: registry)
        return facts
      }
    )
  }

  /// The facts of a property that no other one excludes; see ``relate(_:of:in:)``.
  init(_ entry: Registry.Entry) {
    let property = entry.property
    device = entry.device
    isAction = property.isAction
    hasUrgent = !property.urgent.isEmpty
    hasHold = property.hold != nil
    canConfirm = property.confirm != nil && !property.states.isEmpty && !isAction
    requestCount = UInt8(clamping: property.states.count { $0.get != nil })
    timeToLive = UInt64(max(property.ttl.wholeNanoseconds, 0))
  }

  /// Whether the device can be asked for the state.
  var canAsk: Bool { requestCount > 0 }

  /// Adds what follows from the property's relations and its device.
  mutating func relate(_ relations: Relations, of key: KeyIndex, in registry: Registry) {
    hasExcluded = !relations.excluded.isEmpty
    sleeps = registry.devices[device].awake != nil
    isGroup = registry.devices[device].group != nil
    isMember = !registry.groups.isEmpty && !registry.groups.groups(of: key).isEmpty
  }

  /// Until when a value that is accepted at `now` may wait.
  func expiry(from now: Moment) -> Moment {
    let (end, isBeyond) = now.nanoseconds.addingReportingOverflow(timeToLive)
    return Moment(nanoseconds: isBeyond ? .max : end)
  }
}

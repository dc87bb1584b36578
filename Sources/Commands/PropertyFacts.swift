// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// What the machine asks of a property on every change, worked out once.
///
/// A ``Property`` is large: copying one costs a dozen reference counts.
struct PropertyFacts {
  let device: Int
  let isAction: Bool
  let hasUrgent: Bool
  /// Whether `sent` is followed by `confirmed` or `failed`.
  let canConfirm: Bool
  /// Whether its commands may take others of the device along.
  let canMerge: Bool
  /// Whether the device can be asked for the state.
  let canAsk: Bool
  private let timeToLive: UInt64
  /// Other keys of the device whose commands an urgent value of this one ends.
  let ends: [KeyIndex]
  /// Other keys of the device that this one replaces, or that replace this one.
  let excluded: [KeyIndex]

  /// The facts of all properties, in order.
  static func all(in registry: Registry) -> [PropertyFacts] {
    let related = registry.devices.map { device in
      device.properties.contains { !$0.ends.isEmpty || !$0.excludes.isEmpty }
    }
    return registry.properties.indices.map { place in
      PropertyFacts(
        of: place,
        in: registry,
        relates: related[registry.properties[place].device]
      )
    }
  }

  /// With `relates`, properties of the device name one another.
  private init(of place: Int, in registry: Registry, relates: Bool) {
    let entry = registry.properties[place]
    let property = entry.property
    device = entry.device
    isAction = if case .action = property.kind { true } else { false }
    hasUrgent = !property.urgent.isEmpty
    canConfirm = property.confirm != nil && !property.states.isEmpty && !isAction
    canMerge =
      registry.devices[entry.device].merge && !entry.isRetired && !isAction
      && property.command.payload.isObject
    canAsk = property.states.contains { $0.get != nil }
    timeToLive = UInt64(max(property.ttl.wholeNanoseconds, 0))
    var ends: [KeyIndex] = []
    var excluded: [KeyIndex] = []
    if relates {
      for raw in registry.indices(ofDevice: entry.device) where Int(raw) != place {
        let other = registry.properties[Int(raw)].property
        if Self.names(property.ends, other) { ends.append(KeyIndex(raw)) }
        if Self.names(property.excludes, other) || Self.names(other.excludes, property) {
          excluded.append(KeyIndex(raw))
        }
      }
    }
    self.ends = ends
    self.excluded = excluded
  }

  /// Until when a value may wait that was accepted at `now`.
  func expiry(from now: Moment) -> Moment {
    let (end, isBeyond) = now.nanoseconds.addingReportingOverflow(timeToLive)
    return Moment(nanoseconds: isBeyond ? .max : end)
  }

  private static func names(_ ids: [String], _ property: Property) -> Bool {
    ids.contains { $0 == property.id || property.aliases.contains($0) }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// Continuing with other devices and policies.
extension CommandDispatcher {
  /// Why a command ended whose property is defined otherwise now.
  static let changedReason = "its device file was changed"

  /// Continues with another registry, which continues the one before, and other lanes.
  ///
  /// What is pending keeps its deadline; policies apply from the next change on.
  mutating func replace(
    _ registry: Registry,
    lanes limits: [String: (rate: Double, burst: Int)],
    at now: Moment
  ) {
    self.registry = registry
    relations = Relations.all(in: registry)
    facts = PropertyFacts.all(in: registry, relations)
    deliveries.extend(keys: facts.count, devices: registry.devices.count)
    log.statuses.extend(keys: facts.count)
    for key in facts.keys where !registry[key].isRetired {
      queue.setPolicy(registry[key].property.policy, for: key)
    }
    failOffline(sendQueue.reload(registry, facts, relations, limits: limits, at: now), at: now)
  }

  /// Forgets what the device of a removed key has.
  mutating func forget(_ key: KeyIndex) {
    deliveries.update(key) { $0.forget() }
    log.statuses.setTarget(nil, of: key)
  }

  /// Whether the newest value of `key` that waits is one that its property no longer allows.
  func hasForeignValue(_ key: KeyIndex) -> Bool {
    guard let waiting = queue.pending(key)?.value.value ?? sendQueue[key]?.value else {
      return false
    }
    return !registry[key].property.allows(waiting)
  }

  /// Ends a command in flight and forgets values that do not fit a key's new definition.
  mutating func refit(_ key: KeyIndex, at now: Moment) {
    let entry = registry[key]
    if let flight = deliveries[key].inFlight {
      let isUnprovable = !facts[key].canConfirm && flight.stage == .sent
      if isUnprovable || !entry.property.allows(flight.command.value) {
        abandon(key, as: .superseded, reason: Self.changedReason, at: now)
      }
    }
    deliveries.update(key) { $0.forgetValues(foreignTo: entry.property) }
    refreshTarget(key)
    log.statuses.markChanged(key)
  }
}

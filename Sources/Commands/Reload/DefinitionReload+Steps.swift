// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// The steps of a reload.
///
/// The new definitions count for all keys from one step on. A key's values from before are checked
/// against them when a later step reaches the key, or earlier, before anything else happens to it.
/// So nothing is ever sent that its property does not allow.
extension DefinitionReload {
  /// Begins to continue with another registry and other limits of lanes.
  static func begin(
    _ registry: Registry,
    lanes limits: [String: LaneLimits],
    in dispatcher: inout CommandDispatcher
  ) {
    precondition(dispatcher.reload == nil, "A reload begins after the one before has finished.")
    dispatcher.reload = DefinitionReload(
      from: dispatcher.registry,
      to: registry,
      lanes: dispatcher.sendQueue.assignment(limits: limits)
    )
  }

  /// Does the next step, which looks at `limit` keys or devices at most; one looks at none.
  static func step(
    _ limit: Int,
    in dispatcher: inout CommandDispatcher,
    at now: Moment
  ) -> ReloadStep {
    // The reload is taken out while it changes, so that none of its tables is copied.
    guard var reload = dispatcher.reload.take() else { return .finished }
    switch reload.phase {
    case .preparingKeys, .preparingDevices:
      let (newKeys, devices) = reload.prepare(limit)
      reload.makeRoom(for: newKeys, devices: devices, in: &dispatcher)
      dispatcher.reload = reload
      return .prepared(keys: newKeys.upperBound, devices: devices)
    case .prepared:
      dispatcher.registry = reload.registry
      dispatcher.sendQueue.replace(reload, at: now)
      reload.replace(&dispatcher.facts, &dispatcher.relations)
      dispatcher.reload = reload
      return .replaced
    case .migrating:
      guard let slice = reload.nextSlice(limit) else { return .finished }
      dispatcher.reload = reload
      for place in slice {
        if place < dispatcher.registry.devices.count { dispatcher.sendQueue.renewDevice(place) }
        dispatcher.migrate(KeyIndex(Int32(place)), at: now)
      }
      dispatcher.reload?.endStep()
      return .migrated(slice)
    }
  }

  private func makeRoom(
    for keys: Range<Int>,
    devices: Int,
    in dispatcher: inout CommandDispatcher
  ) {
    dispatcher.sendQueue.extend(keys: keys.upperBound, devices: devices)
    dispatcher.deliveries.extend(keys: keys.upperBound, devices: devices)
    dispatcher.log.statuses.extend(keys: keys.upperBound)
    for place in keys {
      let policy = registry.definition(of: KeyIndex(Int32(place))).property.policy
      dispatcher.queue.setPolicy(policy, for: KeyIndex(Int32(place)))
    }
  }
}

/// What a step of a reload did; see ``CommandStateMachine/continueReload(keys:at:)``.
package enum ReloadStep: Hashable, Sendable {
  /// There is room for so many keys and devices; the old definitions still count.
  case prepared(keys: Int, devices: Int)
  /// The new definitions count from now on.
  case replaced
  /// The values from before of these keys, by place, were checked.
  case migrated(Range<Int>)
  /// The reload has finished.
  case finished
}

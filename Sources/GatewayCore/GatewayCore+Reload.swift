// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Devices
package import LastOut

/// Continuing with other devices and policies, one bounded step of the reload in each step.
///
/// Changes, reports, disconnects and a shutdown may come in between. They meet the old definitions
/// until ``Effect/definitionsReplaced``, and the new ones from then on.
extension GatewayCore {
  package var isReloading: Bool { pipeline.commands.isReloading }

  /// Continues with another registry, which continues this one, and other lanes.
  ///
  /// What is pending stays. ``Effect/reloaded`` follows once no key has a value left that was not
  /// checked against its new definition.
  package mutating func beginReload(
    _ registry: Registry,
    lanes: [String: LaneLimits]
  ) {
    pipeline.commands.beginReload(registry, lanes: lanes)
  }

  /// Asks for the states of these keys, after their topics were subscribed to.
  package mutating func requestStates(of keys: some Sequence<KeyIndex>) {
    pipeline.commands.requestStates(of: keys)
  }

  mutating func continueReload(at now: Moment) -> Effect? {
    guard isReloading else { return nil }
    defer { collectOutcomes(at: now) }
    switch pipeline.commands.continueReload(keys: settings.keysPerReloadStep, at: now) {
    case .prepared(let keys, let devices): makeRoom(forKeys: keys, devices: devices)
    case .replaced:
      let registry = registry
      pipeline.durability?.replaceDevices(registry, awaiting: settings.awaited)
      return .definitionsReplaced
    case .migrated: break
    case .finished:
      pipeline.commands.refreshAllGroups(at: now)
      return .reloaded
    }
    return nil
  }

  private mutating func makeRoom(forKeys keys: Int, devices: Int) {
    states.extend(properties: keys, devices: devices)
    loops.extend(keys: keys)
    pipeline.durability?.extend(toKeys: keys)
  }
}

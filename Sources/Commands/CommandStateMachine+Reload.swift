// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut

/// Continuing with other devices and policies.
extension CommandStateMachine {
  /// Continues with another registry, which continues this one.
  ///
  /// What is pending stays, with the deadline it has; policies apply from the next change on. A
  /// value that its property no longer allows, and whatever waits of a removed key, is cancelled.
  /// Lanes keep their tokens; `limits`, as in ``CommandSettings/lanes``, are their new limits, where
  /// they have any. Takes time in proportion to all keys.
  package mutating func reload(
    _ registry: Registry,
    lanes limits: [String: (rate: Double, burst: Int)]? = nil,
    at now: Moment
  ) {
    let old = self.registry
    precondition(
      registry.properties.count >= old.properties.count,
      "A registry is reloaded only by one that continues it."
    )
    let keys = dispatcher.facts.keys
    for key in keys where registry[key].isRetired && !old[key].isRetired {
      end(key, as: .cancelled, reason: "its device file names it no more", at: now)
      dispatcher.forget(key)
    }
    if let limits { settings.lanes = limits }
    dispatcher.replace(registry, lanes: settings.lanes, at: now)
    waitingSteps.extend(keys: registry.properties.count)
    for key in keys where old[key].property != registry[key].property && !registry[key].isRetired {
      if dispatcher.hasForeignValue(key) {
        endWaiting(key, as: .cancelled, reason: CommandDispatcher.changedReason, at: now)
      }
      dispatcher.refit(key, at: now)
    }
  }
}

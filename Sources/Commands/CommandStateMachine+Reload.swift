// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import LastOut
import Values

/// Continuing with other devices and policies, in the steps of a ``DefinitionReload``.
extension CommandStateMachine {
  package var isReloading: Bool { dispatcher.reload != nil }

  /// Begins to continue with another registry, which continues this one;
  /// ``continueReload(keys:at:)`` does it.
  ///
  /// What is pending stays, with the deadline it has; policies apply from the next change on. A
  /// value that its property no longer allows, and whatever waits of a removed key, is cancelled.
  /// Lanes keep their tokens; `lanes`, as in ``CommandSettings/lanes``, are their new limits, where
  /// they have any.
  package mutating func beginReload(
    _ registry: Registry,
    lanes: [String: LaneLimits]? = nil
  ) {
    if let lanes { settings.lanes = lanes }
    DefinitionReload.begin(registry, lanes: settings.lanes, in: &dispatcher)
  }

  /// Does the next step of a reload, which looks at `limit` keys or devices at most.
  package mutating func continueReload(keys limit: Int, at now: Moment) -> ReloadStep {
    let step = DefinitionReload.step(limit, in: &dispatcher, at: now)
    switch step {
    case .prepared(let keys, _): waitingSteps.extend(keys: keys)
    case .migrated(let places):
      for place in places { endForeignChanges(of: KeyIndex(Int32(place)), at: now) }
    case .replaced, .finished: break
    }
    return step
  }

  /// Gives a key its new definition before anything else happens to it.
  package mutating func migrate(_ key: KeyIndex, at now: Moment) {
    guard isReloading else { return }
    dispatcher.migrate(key, at: now)
    endForeignChanges(of: key, at: now)
  }

  /// Ends the steps of a key that was removed, and a person's hold that its definition no longer has.
  private mutating func endForeignChanges(of key: KeyIndex, at now: Moment) {
    if !holds.isEmpty, !dispatcher.facts[key].hasHold { holds.end(key) }
    guard waitingSteps.contains(key), registry[key].isRetired else { return }
    let reason = Registry.Entry.goneReason
    waitingSteps.end(key, as: .cancelled, reason: reason, in: &dispatcher.log, at: now)
  }
}

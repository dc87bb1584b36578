// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// A key's new definition; ``DefinitionReload`` decides when a key gets it at the latest.
extension CommandDispatcher {
  /// Gives a key its new definition if a reload has not done so yet: ends what no longer fits.
  ///
  /// Call it before anything else happens to a key.
  ///
  /// - Returns: Whether the key got its new definition now.
  @inline(__always)
  @discardableResult
  mutating func migrate(_ key: KeyIndex, at now: Moment) -> Bool {
    reload != nil && migrateInReload(key, at: now)
  }

  private mutating func migrateInReload(_ key: KeyIndex, at now: Moment) -> Bool {
    guard let before = reload?.beginMigration(of: key) else { return false }
    let entry = registry[key]
    if !entry.isSame(as: before) {
      queue.setPolicy(entry.definition.property.policy, for: key)
      endForeignValues(of: key, entry, at: now)
      let (confirms, travels) = (facts[key].canConfirm, facts[key].travels)
      let verdict = deliveries.update(key) {
        $0.adopt(entry, confirms: confirms, travels: travels)
      }
      apply(verdict, to: key, at: now)
      // What is reported elsewhere has not been heard there.
      let hasSameSources = !entry.isRetired && entry.states == before.states
      deliveries.forgetReception(of: key, keepsHeard: hasSameSources)
      log.statuses.markChanged(key)
    }
    if !sendQueue.place(key) { failOffline([key], at: now) }
    return true
  }

  /// Ends what waits and may not be sent any more; what is older than that ends with it.
  private mutating func endForeignValues(
    of key: KeyIndex,
    _ entry: Registry.Entry,
    at now: Moment
  ) {
    if let pending = queue.pending(key)?.value.value, let reason = entry.reasonToEnd(pending) {
      _ = endWaiting(key, as: .cancelled, reason: reason, at: now)
    } else if sendQueue.commandCount(key) > 1 {
      endForeignActions(of: key, entry, at: now)
    } else if let value = sendQueue[key]?.value, let reason = entry.reasonToEnd(value) {
      endWaitingCommand(of: key, as: .cancelled, reason: reason, at: now)
    }
  }

  /// Ends those of several actions that may not be sent any more: all, if the property is no action.
  private mutating func endForeignActions(
    of key: KeyIndex,
    _ entry: Registry.Entry,
    at now: Moment
  ) {
    let changed = isAction(key) ? nil : Registry.Entry.changedReason
    var kept: [Command] = []
    while let command = sendQueue.remove(key) {
      if let reason = entry.reasonToEnd(command.value) ?? changed {
        emit(.cancelled, of: command, reason: reason, for: key, at: now)
      } else {
        kept.append(command)
      }
    }
    for command in kept { insert(command, for: key, at: now) }
  }
}

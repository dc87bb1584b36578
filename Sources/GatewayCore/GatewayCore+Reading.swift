// Settle
// SPDX-License-Identifier: Apache-2.0

package import Commands
package import Durability
package import JSON
package import LastOut
import Routing
package import Values

/// What surfaces show. Nothing here changes anything.
extension GatewayCore {
  // MARK: - Keys

  /// What one key shows: target, actual value, phase.
  package func status(_ key: KeyIndex) -> KeyStatus { commands.status(key) }

  /// The number of values that wait for quiet or to be sent.
  package var pendingCount: Int { commands.pendingCount }

  /// How many commands of `key` wait to be sent.
  package func commandCount(_ key: KeyIndex) -> Int { commands.sendQueue.commandCount(key) }

  /// What waits for `key`, the newest value; `nil` when nothing does.
  ///
  /// Takes constant time, and so does not say when a lane sends it.
  package func pending(_ key: KeyIndex) -> PendingStatus? { PendingStatus(of: key, in: commands) }

  /// What waits for those of `keys` that have something waiting; see
  /// ``Commands/PendingStatus/all(of:in:at:)``.
  package func pending(_ keys: [KeyIndex], at now: Moment) -> [PendingStatus] {
    PendingStatus.all(of: keys, in: commands, at: now)
  }

  /// When the values that wait in lanes are sent.
  ///
  /// Takes time in proportion to everything that waits in lanes.
  package func sendTimes(after now: Moment) -> [KeyIndex: Moment] {
    PendingStatus.sendTimes(in: commands, after: now)
  }

  /// Whether the property has a state topic and has never been reported.
  package func isUnheard(_ key: KeyIndex) -> Bool { commands.isUnheard(key) }

  /// The reports that could not be read.
  package var unreadableReports: UnreadableReports { commands.unreadable }

  /// What devices reported over the last hours.
  package var reportHistory: ReportHistory { reports }

  // MARK: - Devices and lanes

  /// Whether commands are sent to a device now: its own broker is connected, and so is it.
  package func isOnline(device: Int) -> Bool { commands.sendQueue.isDeviceOnline(device) }

  /// Whether a device is not online because its availability is not known yet.
  package func awaitsAvailability(of device: Int) -> Bool {
    commands.sendQueue.awaitsAvailability(of: device)
  }

  /// Whether a device has properties with a state topic, and none was ever reported.
  package func isUnheard(device: Int) -> Bool { commands.isUnheard(device: device) }

  /// The lanes that have a limit.
  package var laneStatuses: [LaneStatus] { commands.sendQueue.laneStatuses }

  // MARK: - What a change would do

  /// The absolute value of a change; `nil` when there is nothing to count from.
  ///
  /// - Throws: When the property has no such change.
  package func value(
    after change: ValueChange,
    of key: KeyIndex
  ) throws(ValidationError) -> Value? {
    try commands.value(after: change, of: key)
  }

  /// What a change of a group's key asks of one member.
  ///
  /// - Throws: When the member does not allow the value.
  package func memberChange(
    _ change: ValueChange,
    for member: KeyIndex
  ) throws(ValidationError) -> ValueChange {
    try commands.memberChange(change, for: member)
  }

  /// Whether `value` would not be sent, because the device is known to have it.
  package func isUnchanged(_ value: Value, of key: KeyIndex) -> Bool {
    commands.isUnchanged(value, of: key)
  }

  /// Who holds `key`, and until when; `nil` when nobody does.
  package func holder(of key: KeyIndex, at now: Moment) -> (source: String, until: Moment)? {
    commands.holds.holder(of: key, at: now)
  }

  /// Checks that no person holds the keys of a change that another source asks for.
  ///
  /// - Throws: `held`.
  package func checkHolds(
    _ change: ValueChange,
    of key: KeyIndex,
    from origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    try commands.holds.check(change, of: key, from: origin, in: commands, at: now)
  }

  /// Checks that no person holds one of the keys of values that are set together.
  ///
  /// - Throws: `held`, with the property.
  package func checkHolds(
    _ values: [(key: KeyIndex, value: Value)],
    from origin: ChangeOrigin?,
    at now: Moment
  ) throws(ValidationError) {
    try commands.holds.check(values, from: origin, in: commands, at: now)
  }

  /// The messages that `values` would be sent in if they settled now; see
  /// ``Commands/CommandPublish/previews(of:options:in:allows:at:)``.
  package func previews(
    of values: [(key: KeyIndex, value: Value)],
    options: [JSONValue.Member]?,
    allows: (KeyIndex, Value) -> Bool,
    at now: Moment
  ) -> [CommandPublish] {
    CommandPublish.previews(of: values, options: options, in: commands, allows: allows, at: now)
  }

  // MARK: - Counters

  package var statistics: CommandStatistics { commands.log.statistics }

  /// How many messages of a kind were rejected.
  package func rejectedCount(_ kind: RejectionLog.Kind) -> UInt64 { rejections.total(kind) }

  /// How many changes of feedback loops were slowed.
  package var slowedCount: UInt64 { loops.slowedCount }

  /// What waits, and what for; takes time in proportion to all keys.
  package func queueSummary() -> QueueSummary { QueueSummary(of: commands) }

  /// Which devices and properties are not heard; takes time in proportion to all keys.
  package func reportSummary() -> ReportSummary { ReportSummary(of: commands) }

  // MARK: - The store

  /// Whether accepted values are written to a store.
  package var hasStore: Bool { durability != nil }

  /// Why nothing can be written; `nil` while the store works, or without one.
  package var storeFault: JournalFault? { durability?.fault }

  /// Accepted changes whose answer waits for the store.
  package var storeWaitingCount: Int { durability?.queue.count ?? 0 }

  /// Whether so much waits for the store that clients must slow down.
  package var isStoreBehind: Bool { durability?.isBehind ?? false }
}

/// What a simulation compares with its model. The host calls none of it.
extension GatewayCore {
  /// Whether anything is not acknowledged, what cannot be sent included; constant time.
  package var hasUnsent: Bool { commands.hasUnsent }

  /// Whether every command that can be sent was sent and answered.
  package var areCommandsDrained: Bool { commands.isDrained }

  /// The keys of which something is not acknowledged, in order of definition.
  package func keysNotAcknowledged() -> [KeyIndex] { commands.unsentKeys() }

  /// When commands have something to do next, apart from the store and the gateway's own topics.
  package func nextCommandDeadline(after now: Moment) -> Moment? {
    commands.nextDeadline(after: now)
  }

  /// The events that were decided and not collected yet.
  package var undeliveredEvents: [CommandEvent] { commands.log.events }

  /// How many keys have changed since their topics were last looked at.
  package var changedKeyCount: Int { commands.log.statuses.changedKeys.count }

  /// Whether an urgent command of `key` waits to be sent.
  package func isUrgentWaiting(_ key: KeyIndex) -> Bool { commands.isUrgentWaiting(key) }

  /// Whether a command of `key` was handed to the broker and has no answer yet.
  package func isInFlight(_ key: KeyIndex) -> Bool { commands.isInFlight(key) }

  /// The keys that the store keeps from being sent now.
  package var withheldKeys: [KeyIndex] { durability?.withheld ?? [] }

  /// What the store holds, and what is being written; `nil` without one.
  package var storePlan: JournalPlan? { durability?.plan }

  /// How many routed messages have expired.
  package var expiredRouteCount: UInt64 { routes.statistics.expired }
}

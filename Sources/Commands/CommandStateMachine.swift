// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut
package import Values

/// Decides what becomes of every change: events and the time go in, messages and events come out.
///
/// It decides what a change means: its value, whether there is room for it, and which commands of
/// other keys it ends. Then the ``CommandDispatcher`` takes the value to its device.
///
/// It has no clock, no lock and does no I/O. After any call, the owner removes the events and
/// changed keys of the dispatcher's log, sends what its ``CommandDispatcher/nextPublish(at:)``
/// returns, and arms one timer for ``nextDeadline(after:)``. What concerns the way of commands
/// alone, the owner asks the dispatcher.
package struct CommandStateMachine: ~Copyable {
  /// Values on their way, with what keys show and what devices have.
  package var dispatcher: CommandDispatcher
  /// Steps that wait for the state they count from.
  var waitingSteps: WaitingSteps
  /// Keys that a person has changed lately.
  package internal(set) var holds = HandHolds()
  var settings: CommandSettings

  /// Whether steps that had waited are kept in ``appliedSteps``.
  package var recordsAppliedSteps = false
  /// The steps that had waited and were accepted, in order, until the owner removes them.
  package var appliedSteps: [AppliedStep] = []

  package init(registry: Registry, settings: CommandSettings = CommandSettings()) {
    self.settings = settings
    dispatcher = CommandDispatcher(registry: registry, settings: settings)
    waitingSteps = WaitingSteps(keys: registry.properties.count, patience: settings.stepPatience)
  }

  package var registry: Registry { dispatcher.registry }

  // MARK: - What waits

  /// Whether anything is not acknowledged, what cannot be sent included; constant time.
  package var hasUnsent: Bool { dispatcher.hasUnsent || !waitingSteps.isEmpty }

  /// The keys of which something is not acknowledged, in order of definition.
  ///
  /// Takes time in proportion to all keys, unless there are none.
  package func unsentKeys() -> [KeyIndex] {
    guard hasUnsent else { return [] }
    return dispatcher.facts.keys.filter { dispatcher.isUnsent($0) || waitingSteps.contains($0) }
  }

  // MARK: - Time

  /// The next moment at which ``advance(to:)`` or sending has something to do; `nil`
  /// when nothing waits for time.
  package func nextDeadline(after now: Moment) -> Moment? {
    let next = Moment.earlier(dispatcher.nextDeadline(after: now), waitingSteps.nextOverdue)
    if dispatcher.isClosing { return next }
    return Moment.earlier(next, dispatcher.sendQueue.nextRequestDeadline(after: now))
  }

  /// Moves on everything that is due: values that are quiet, then whatever has waited too long.
  package mutating func advance(to now: Moment) {
    dispatcher.settleQuiet(at: now)
    dispatcher.sendQueue.endPresumedRequests(at: now)
    while let due = Moment.earlier(dispatcher.nextTimeout, waitingSteps.nextOverdue), due <= now {
      if !dispatcher.timeOut(at: due, now), let key = waitingSteps.popOverdue(at: due) {
        migrate(key, at: now)
        rejectSteps(of: key, as: .noBase, at: now)
      }
    }
  }

  // MARK: - Devices

  /// Takes a value that a device reported for a property, as found on the wire.
  @discardableResult
  package mutating func reported(
    _ key: KeyIndex,
    _ wire: JSONValue,
    at now: Moment
  ) -> ReportOutcome {
    migrate(key, at: now)
    dispatcher.sendQueue.reported(key)
    guard let report = dispatcher.reported(key, wire, at: now) else {
      // A device reports null for what it does not know, and an action has no value.
      let facts = dispatcher.facts[key]
      let isReadable = wire == .null || facts.isAction || facts.hasForms
      let isFirst = dispatcher.reportedWithoutValue(key, wire, isReadable: isReadable)
      return isReadable ? .nothing : .unreadable(isFirst: isFirst)
    }
    if report.isByHand { endOthersByHand(report.value, of: key, at: now) }
    applySteps(of: key, at: now)
    return .value(report.value)
  }

  /// Takes a message on a state topic in which there can be no value; see
  /// ``StateSource/Reading/unreadable``.
  package mutating func reportedUnreadable(
    _ key: KeyIndex,
    _ payload: JSONValue,
    at now: Moment
  ) -> ReportOutcome {
    migrate(key, at: now)
    if dispatcher.facts[key].hasForms { return .nothing }
    let isFirst = dispatcher.reportedWithoutValue(key, payload, isReadable: false)
    return .unreadable(isFirst: isFirst)
  }

  /// Takes a device's own acknowledgement of a value; its state may follow.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    migrate(key, at: now)
    dispatcher.accepted(key, wire, at: now)
  }

  /// Takes a device's reply to the message with the number `message`; `problem` is why it refused.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    migrate(key, at: now)
    dispatcher.replied(key, to: message, problem: problem, at: now)
  }
}

/// What a device's report says.
package enum ReportOutcome: Hashable, Sendable {
  case value(Value)
  /// It can be read, and has no value.
  case nothing
  /// It cannot be read; `isFirst` for the first such report of the property.
  case unreadable(isFirst: Bool)
}

/// What a ``CommandStateMachine`` is configured with beside the devices.
package struct CommandSettings: Sendable {
  /// By lane; one that is not named here has no limit.
  package var lanes: [String: LaneLimits] = [:]
  /// How many keys may have a waiting value.
  package var pendingLimit = 100_000
  /// How long a step waits for the state that was requested.
  package var stepPatience: Duration = .seconds(2)
  /// What the numbers of messages count from.
  ///
  /// It differs after each start, so that a reply to an earlier process's message is recognised.
  package var firstMessage: UInt64 = 0

  package init() {}
}

/// Groups: their keys stand for keys of other devices and never have a value of their own in
/// flight.
extension CommandStateMachine {
  /// Whether a key stands for keys of other devices.
  @inline(__always)
  package func isGroup(_ key: KeyIndex) -> Bool { dispatcher.facts[key].isGroup }

  /// What a change of a group's key asks of its members, before any of them changes.
  ///
  /// A toggle makes the members the same: off, if any of them is on. A step counts from what each
  /// has.
  package func groupChange(_ change: ValueChange, of group: KeyIndex) -> ValueChange {
    guard case .toggle = change else { return change }
    let values = registry.groups.members(of: group).map { base(of: $0) }
    if values.contains(.boolean(true)) { return .set(.boolean(false)) }
    // Where one is unknown, each member's toggle says so, or waits for its state.
    return values.allSatisfy { $0 == .boolean(false) } ? .set(.boolean(true)) : .toggle
  }

  /// What a change of a group's key asks of one member.
  ///
  /// - Throws: When the member does not allow the value.
  package func memberChange(
    _ change: ValueChange,
    for member: KeyIndex
  ) throws(ValidationError) -> ValueChange {
    guard case .set(let value) = change else { return change }
    return .set(try registry.value(from: value.json, of: member))
  }

  /// Shows what the members of groups have after keys have changed.
  package mutating func refreshGroups(at now: Moment) {
    guard !registry.groups.isEmpty else { return }
    var outdated: Set<KeyIndex> = []
    for key in dispatcher.log.statuses.changedKeys where dispatcher.facts[key].isMember {
      outdated.formUnion(registry.groups.groups(of: key))
    }
    for key in outdated { refreshGroup(key, at: now) }
  }

  /// Shows what the members of all groups have, after a reload.
  package mutating func refreshAllGroups(at now: Moment) {
    for key in registry.groups.keys { refreshGroup(key, at: now) }
  }

  private mutating func refreshGroup(_ key: KeyIndex, at now: Moment) {
    let members = registry.groups.members(of: key)
    let actual = Self.common(members.map { dispatcher.deliveries[$0].actual })
    let target = Self.common(members.map { dispatcher.log.statuses.target(of: $0) })
    if dispatcher.deliveries[key].actual != actual {
      dispatcher.deliveries.update(key) { $0.show(actual) }
      dispatcher.log.statuses.recordReport(for: key, at: now)
    }
    dispatcher.setTarget(target, of: key)
  }

  /// The value that all have; `nil` where they differ or one is unknown.
  private static func common(_ values: some Sequence<Value?>) -> Value? {
    var first: Value?
    for value in values {
      guard let value, first == nil || first == value else { return nil }
      first = value
    }
    return first
  }
}

extension CommandEvent {
  /// A step in the life of a group's command.
  package init(
    ofGroup key: KeyIndex,
    _ phase: Phase,
    value: Value?,
    collapsed: Int,
    number: UInt64,
    acceptedAt: Moment,
    at now: Moment,
    reason: String?,
    origin: ChangeOrigin?,
    isFinal: Bool
  ) {
    self.init(
      key: key,
      phase: phase,
      value: value,
      collapsed: collapsed,
      number: number,
      acceptedAt: acceptedAt,
      at: now,
      attempt: 1,
      reason: reason,
      origin: origin,
      isFinal: isFinal
    )
  }
}

/// What a journal asks for.
extension CommandStateMachine {
  /// Sends nothing of `key` until ``release(_:)``; with `exceptUrgent`, nothing but an urgent
  /// value.
  ///
  /// Its values go on to settle and to be replaced.
  package mutating func withhold(_ key: KeyIndex, exceptUrgent: Bool = false) {
    dispatcher.sendQueue.withhold(key, exceptUrgent: exceptUrgent)
  }

  /// Sends values of `key` again.
  package mutating func release(_ key: KeyIndex) { dispatcher.sendQueue.release(key) }

  /// Resumes a value that an earlier process accepted: it is sent as soon as its lane lets it, or
  /// with `settles` after a new quiet period.
  ///
  /// Nothing newer of the key may have been accepted since. No `accepted` is emitted. Of the keys
  /// that the value ends, only the commands of `ended` end: those that are older. Those of `riders`
  /// are sent with it.
  ///
  /// - Returns: The number that its events carry.
  package mutating func resume(
    _ value: Value,
    of key: KeyIndex,
    ending ended: [KeyIndex]? = nil,
    with riders: [KeyIndex] = [],
    settles: Bool = false,
    at now: Moment,
    expiresAt: Moment,
    origin: ChangeOrigin?,
    options: [JSONValue.Member]?
  ) -> UInt64 {
    migrate(key, at: now)
    let change = PendingChange(
      value: value,
      number: dispatcher.log.nextNumber(),
      acceptedAt: now,
      expiresAt: expiresAt,
      origin: origin,
      members: options,
      isReplayed: true
    )
    dispatcher.log.statuses.record(.accepted, of: change.number, for: key, at: now)
    dispatcher.setTarget(value, of: key)
    let isUrgent = dispatcher.isUrgent(value, of: key)
    endRelated(to: key, among: ended, isUrgent: isUrgent, at: now)
    endContradicting(value, of: key, among: ended, at: now)
    for rider in riders { dispatcher.sendQueue.ride(rider) }
    let number = change.number
    if settles, !isUrgent {
      dispatcher.enqueue(change, for: key, at: now)
    } else {
      dispatcher.makeReady(Command(change: change, isUrgent: isUrgent), for: key, at: now)
    }
    return number
  }

  /// The keys among `rivals` whose commands wait and can be sent with one of `key` that they
  /// contradict.
  package func riders(of key: KeyIndex, among rivals: [KeyIndex]) -> [KeyIndex] {
    let relations = dispatcher.relations[key]
    return rivals.filter { rival in
      relations.implying.contains { $0.key == rival } && relations.mergeGroup.contains(rival)
        && dispatcher.sendQueue.hasCommand(rival)
    }
  }

  /// Forgets what waits and what is in flight of `key`, and what its device has.
  ///
  /// Another process drives it from now on. The events that tell of it are the owner's to drop.
  package mutating func forget(_ key: KeyIndex, at now: Moment) {
    end(key, as: .cancelled, reason: "another gateway drives it", at: now)
    dispatcher.deliveries.update(key) { $0 = Delivery() }
    dispatcher.deliveries.forgetReception(of: key, keepsHeard: false)
    dispatcher.refreshTarget(key)
  }

  /// Shows what another process says of `key`, which that one drives.
  package mutating func show(_ status: KeyStatus, of key: KeyIndex) {
    dispatcher.deliveries.update(key) { $0.show(status.actual) }
    dispatcher.log.statuses.show(status, of: key)
  }

  /// Gives lanes other limits, until the next reload.
  package mutating func setLaneLimits(_ limits: [String: LaneLimits], at now: Moment) {
    dispatcher.sendQueue.setLimits(limits, at: now)
  }

  /// Who has asked for the command of `key` that was handed to MQTT and has not ended.
  package func originInFlight(_ key: KeyIndex) -> ChangeOrigin? {
    guard let flight = dispatcher.deliveries[key].inFlight, !flight.isEnded else { return nil }
    return flight.command.change.origin
  }

  /// Whether a command of `key` was handed to the broker and has no answer yet.
  package func isInFlight(_ key: KeyIndex) -> Bool {
    dispatcher.sendQueue.awaitsAcknowledgement(key)
  }

  /// Whether anything of `key` waits that ``refuseWaiting(_:reason:at:)`` would reject.
  package func hasRefusable(_ key: KeyIndex) -> Bool {
    dispatcher.queue.isPending(key) || waitingSteps.contains(key)
      || dispatcher.sendQueue[key].map { !$0.isUrgent } ?? false
  }

  /// Whether an urgent command of `key` waits to be sent.
  package func isUrgentWaiting(_ key: KeyIndex) -> Bool {
    dispatcher.sendQueue[key]?.isUrgent ?? false
  }

  /// Rejects after all what waits of `key`, because it could not be made durable; an urgent command
  /// still waits.
  package mutating func refuseWaiting(_ key: KeyIndex, reason: String, at now: Moment) {
    guard endWaiting(key, as: .rejected, reason: reason, exceptUrgent: true, at: now) else {
      return
    }
    dispatcher.log.statistics.rejected += 1
    dispatcher.refreshTarget(key)
  }
}

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

  /// Ends the steps of a key that was removed, and a person's hold that its definition no longer
  /// has.
  private mutating func endForeignChanges(of key: KeyIndex, at now: Moment) {
    if !holds.isEmpty, !dispatcher.facts[key].hasHold { holds.end(key) }
    guard waitingSteps.contains(key), registry[key].isRetired else { return }
    let reason = Registry.Entry.goneReason
    waitingSteps.end(key, as: .cancelled, reason: reason, in: &dispatcher.log, at: now)
  }
}

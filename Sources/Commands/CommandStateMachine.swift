// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut
package import Values

/// Decides what becomes of every change: events and the time go in, messages and events come out.
///
/// A change is checked: its value, whether there is room for it, and which commands of other keys
/// it ends. Its value then waits in the last-out queue until its key is quiet, as a command in the
/// ``SendQueue`` until its lane, its device and the key's previous command let it be sent, and in
/// the ``DeliveryTable`` until the device shows it. Each part decides on its own; the machine moves
/// values from one to the next, key by key, and emits what happens to them.
///
/// It has no clock, no lock and does no I/O. After any call, the owner removes the events and
/// changed keys of ``log``, sends what ``nextPublish(at:)`` returns, and arms one timer for
/// ``nextDeadline(after:)``.
package struct CommandStateMachine: ~Copyable {
  package internal(set) var registry: Registry
  var facts: KeyArray<PropertyFacts>
  var relations: LazyArray<Relations>
  /// Values that wait for quiet.
  var queue: LastOutCore<PendingChange>
  /// Commands that wait to be sent.
  package internal(set) var sendQueue: SendQueue
  /// Commands in flight, and what devices have.
  var deliveries: DeliveryTable
  package var log: EventLog
  /// Changes of groups whose way to the members is settled.
  var groupDecisions = GroupDecisions()
  /// The groups that the bridge has with the same members, as it has announced in this connection.
  package var bridgeGroups: Set<Int> = []
  /// A reload in progress.
  var reload: DefinitionReload?
  /// Whether lanes hold nothing back and nothing is sent again for want of a confirmation.
  var isClosing = false

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
    self.registry = registry
    relations = Relations.all(in: registry)
    facts = PropertyFacts.all(in: registry, relations)
    queue = LastOutCore(policy: .standard, capacity: max(facts.count, 1))
    sendQueue = SendQueue(registry: registry, facts, relations, limits: settings.lanes)
    deliveries = DeliveryTable(keys: facts.count, devices: registry.devices.count)
    log = EventLog(keys: facts.count)
    waitingSteps = WaitingSteps(keys: registry.properties.count, patience: settings.stepPatience)
    setPolicies()
  }

  private mutating func setPolicies() {
    var rules: [Int32?] = Array(repeating: nil, count: registry.definitionCount)
    for key in facts.keys {
      let number = registry.definitionNumber(of: key)
      let policy = registry.definition(of: key)
      let rule = rules[number] ?? queue.addPolicy(policy.property.policy)
      rules[number] = rule
      queue.setRule(rule, for: key)
    }
  }

  // MARK: - What waits

  /// Whether anything is not acknowledged, what cannot be sent included; constant time.
  package var hasUnsent: Bool {
    sendQueue.unacknowledgedCount > 0 || pendingCount > 0 || !waitingSteps.isEmpty
  }

  /// The keys of which something is not acknowledged, in order of definition.
  ///
  /// Takes time in proportion to all keys, unless there are none.
  package func unsentKeys() -> [KeyIndex] {
    guard hasUnsent else { return [] }
    return facts.keys.filter { isUnsent($0) || waitingSteps.contains($0) }
  }

  /// The value that the device of `key` has confirmed, by a report; `nil` where it is not known, or
  /// something newer waits or is in flight.
  package func confirmedTarget(of key: KeyIndex) -> Value? {
    isWaiting(key) ? nil : deliveries[key].confirmedTarget
  }

  /// Whether a command of `key` waits or is in flight.
  package func isUnderWay(_ key: KeyIndex) -> Bool {
    isWaiting(key) || deliveries[key].inFlight.map { !$0.isEnded } ?? false
  }

  private func isWaiting(_ key: KeyIndex) -> Bool {
    sendQueue[key] != nil || queue.isPending(key) || waitingSteps.contains(key)
  }

  /// The device of `key` has gone: it moves no further.
  package mutating func stand(_ key: KeyIndex) {
    deliveries.update(key) { $0.stand() }
    refreshTarget(key)
  }

  /// The number of the newest command of `key` that had a phase; 0 before the first.
  package func newestNumber(of key: KeyIndex) -> UInt64 { log.statuses.newestNumber(of: key) }

  // MARK: - Time

  /// The next moment at which ``advance(to:)`` or sending has something to do; `nil`
  /// when nothing waits for time.
  package func nextDeadline(after now: Moment) -> Moment? {
    let overdue = Moment.earlier(nextTimeout, waitingSteps.nextOverdue)
    let next = Moment.earlier(queue.nextDeadline, overdue)
    if isClosing { return next }
    let token = sendQueue.nextToken(after: now)
    return Moment.earlier(next, Moment.earlier(token, sendQueue.nextRequestDeadline(after: now)))
  }

  /// Moves on everything that is due: values that are quiet, then whatever has waited too long.
  package mutating func advance(to now: Moment) {
    settleQuiet(at: now)
    sendQueue.endPresumedRequests(at: now)
    while let due = Moment.earlier(nextTimeout, waitingSteps.nextOverdue), due <= now {
      if !timeOut(at: due, now), let key = waitingSteps.popOverdue(at: due) {
        migrate(key, at: now)
        rejectSteps(of: key, as: .noBase, at: now)
      }
    }
  }

  /// When a command has waited too long to be sent or to be confirmed, or makes room in its lane,
  /// or a key is at rest.
  @inline(__always)
  var nextTimeout: Moment? {
    Moment.earlier(
      Moment.earlier(sendQueue.nextExpiry, deliveries.nextOverdue),
      Moment.earlier(sendQueue.nextPresumption, sendQueue.retained.deadline)
    )
  }

  /// Ends or repeats one command that has waited too long at `due`, or sets the target of one key
  /// that is at rest; `false` when there is none.
  mutating func timeOut(at due: Moment, _ now: Moment) -> Bool {
    if let key = sendQueue.popExpired(at: due) {
      // A key that gets its new definition has another deadline, or none.
      if migrate(key, at: now) { return true }
      let reason = sendQueue.waitReason(of: key)
      // The commands of an action that wait behind it have times to live of their own.
      if let command = sendQueue.remove(key) {
        emit(.expired, of: command, reason: reason, for: key, at: now)
        refreshTarget(key)
      }
    } else if let key = deliveries.popOverdue(at: due) {
      migrate(key, at: now)
      if deliveries[key].awaitsConfirmation {
        confirmationOverdue(key, at: now)
      } else {
        rest(key, at: due, now)
      }
    } else if let end = sendQueue.retained.deadline, end <= due {
      failOffline(sendQueue.retainedOverdue(at: now), at: now)
    } else {
      return sendQueue.lanes.endPresumed(at: due)
    }
    return true
  }
}

/// What a ``CommandStateMachine`` is configured with beside the devices.
package struct CommandSettings: Sendable {
  /// By lane; one that is not named here has no limit.
  package var lanes: [String: LaneLimits] = [:]
  /// How many keys may have a waiting value.
  package var pendingLimit = 100_000
  /// How long a step waits for the state that was requested.
  package var stepPatience: Duration = .seconds(2)
  /// How many members a group has at least whose message carries what a scene gives all of them.
  ///
  /// A group's message is a broadcast in a Zigbee mesh. In the model of `make lanes ARGS=groups` it
  /// is faster from six lamps on, in each of three meshes.
  package var fewestCarried = 6
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
  package func isGroup(_ key: KeyIndex) -> Bool { facts[key].isGroup }

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
    for key in log.statuses.changedKeys where facts[key].isMember {
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
    let actual = Self.common(members.map { deliveries[$0].actual })
    let target = Self.common(members.map { log.statuses.target(of: $0) })
    if deliveries[key].actual != actual {
      deliveries.update(key) { $0.show(actual) }
      log.statuses.recordReport(for: key, at: now)
    }
    setTarget(target, of: key)
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
    sendQueue.withhold(key, exceptUrgent: exceptUrgent)
  }

  /// Sends values of `key` again.
  package mutating func release(_ key: KeyIndex) { sendQueue.release(key) }

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
      number: log.nextNumber(),
      acceptedAt: now,
      expiresAt: expiresAt,
      origin: origin,
      members: options,
      isReplayed: true,
      flow: sendQueue.lanes.flow(of: origin?.source, at: now)
    )
    log.statuses.record(.accepted, of: change.number, for: key, at: now)
    setTarget(value, of: key)
    let isUrgent = isUrgent(value, of: key)
    endRelated(to: key, among: ended, isUrgent: isUrgent, at: now)
    endContradicting(value, of: key, among: ended, at: now)
    for rider in riders { sendQueue.ride(rider) }
    let number = change.number
    if settles, !isUrgent {
      enqueue(change, for: key, at: now)
    } else {
      makeReady(Command(change: change, isUrgent: isUrgent), for: key, at: now)
    }
    return number
  }

  /// The keys among `rivals` whose commands wait and can be sent with one of `key` that they
  /// contradict.
  package func riders(of key: KeyIndex, among rivals: [KeyIndex]) -> [KeyIndex] {
    let relations = relations[key]
    return rivals.filter { rival in
      relations.implying.contains { $0.key == rival } && relations.mergeGroup.contains(rival)
        && sendQueue.hasCommand(rival)
    }
  }

  /// Forgets what waits and what is in flight of `key`, and what its device has.
  ///
  /// Another process drives it from now on. The events that tell of it are the owner's to drop.
  package mutating func forget(_ key: KeyIndex, at now: Moment) {
    end(key, as: .cancelled, reason: "another gateway drives it", at: now)
    deliveries.update(key) { $0 = Delivery() }
    deliveries.forgetReception(of: key, keepsHeard: false)
    refreshTarget(key)
  }

  /// Shows what another process says of `key`, which that one drives.
  package mutating func show(_ status: KeyStatus, of key: KeyIndex) {
    deliveries.update(key) { $0.show(status.actual) }
    log.statuses.show(status, of: key)
  }

  /// Gives lanes other limits, until the next reload.
  package mutating func setLaneLimits(_ limits: [String: LaneLimits], at now: Moment) {
    sendQueue.lanes.setLimits(limits, at: now)
  }

  /// A message said that the mesh of a lane, by name, has no room for commands.
  package mutating func laneIsBusy(_ name: String, at now: Moment) {
    sendQueue.lanes.refused(by: name, at: now)
  }

  /// Who has asked for the command of `key` that was handed to MQTT and has not ended.
  package func originInFlight(_ key: KeyIndex) -> ChangeOrigin? {
    guard let flight = deliveries[key].inFlight, !flight.isEnded else { return nil }
    return flight.command.change.origin
  }

  /// Whether a command of `key` was handed to the broker and has no answer yet.
  package func isInFlight(_ key: KeyIndex) -> Bool {
    sendQueue.awaitsAcknowledgement(key)
  }

  /// Whether anything of `key` waits that ``refuseWaiting(_:reason:at:)`` would reject.
  package func hasRefusable(_ key: KeyIndex) -> Bool {
    queue.isPending(key) || waitingSteps.contains(key)
      || sendQueue[key].map { !$0.isUrgent } ?? false
  }

  /// Whether an urgent command of `key` waits to be sent.
  package func isUrgentWaiting(_ key: KeyIndex) -> Bool {
    sendQueue[key]?.isUrgent ?? false
  }

  /// Rejects after all what waits of `key`, because it could not be made durable; an urgent command
  /// still waits.
  package mutating func refuseWaiting(_ key: KeyIndex, reason: String, at now: Moment) {
    guard endWaiting(key, as: .rejected, reason: reason, exceptUrgent: true, at: now) else {
      return
    }
    log.statistics.rejected += 1
    refreshTarget(key)
  }
}

/// Continuing with other devices and policies, in the steps of a ``DefinitionReload``.
extension CommandStateMachine {
  package var isReloading: Bool { reload != nil }

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
    DefinitionReload.begin(registry, lanes: settings.lanes, in: &self)
  }

  /// Does the next step of a reload, which looks at `limit` keys or devices at most.
  package mutating func continueReload(keys limit: Int, at now: Moment) -> ReloadStep {
    DefinitionReload.step(limit, in: &self, at: now)
  }

  /// Ends the steps of a key that was removed, and a person's hold that its definition no longer
  /// has.
  mutating func endForeignChanges(of key: KeyIndex, at now: Moment) {
    if !holds.isEmpty, !facts[key].hasHold { holds.end(key) }
    guard waitingSteps.contains(key), registry[key].isRetired else { return }
    let reason = Registry.Entry.goneReason
    waitingSteps.end(key, as: .cancelled, reason: reason, in: &log, at: now)
  }
}

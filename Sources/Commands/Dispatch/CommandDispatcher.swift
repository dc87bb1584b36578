// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
import JSON
package import LastOut
import Values

/// The way of an accepted value to its device.
///
/// A value waits in the last-out queue until its key is quiet, as a command in the ``SendQueue``
/// until its lane, its device and the key's previous command let it be sent, and in the
/// ``DeliveryTable`` until the device shows it. Each part decides on its own; the dispatcher moves
/// values from one to the next, key by key, and emits what happens to them.
package struct CommandDispatcher: ~Copyable {
  package internal(set) var registry: Registry
  var facts: KeyArray<PropertyFacts>
  var relations: LazyArray<Relations>
  /// What the numbers of messages count from.
  let firstMessage: UInt64

  /// Values that wait for quiet.
  var queue: LastOutCore<PendingChange>
  /// Commands that wait to be sent.
  package internal(set) var sendQueue: SendQueue
  /// Commands in flight, and what devices have.
  var deliveries: DeliveryTable
  package var log: EventLog
  /// Changes of groups whose way to the members is settled.
  var groupDecisions = GroupDecisions()
  /// A reload in progress.
  var reload: DefinitionReload?
  /// Whether lanes hold nothing back and nothing is sent again for want of a confirmation.
  var isClosing = false

  init(registry: Registry, settings: CommandSettings) {
    self.registry = registry
    relations = Relations.all(in: registry)
    facts = PropertyFacts.all(in: registry, relations)
    firstMessage = settings.firstMessage
    queue = LastOutCore(policy: .standard, capacity: max(facts.count, 1))
    sendQueue = SendQueue(registry: registry, facts, relations, limits: settings.lanes)
    deliveries = DeliveryTable(keys: facts.count, devices: registry.devices.count)
    log = EventLog(keys: facts.count)
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

  // MARK: - Into the queue

  /// Lets an accepted value settle, in place of an older one that waits for quiet or to be
  /// repeated.
  @inline(__always)
  mutating func enqueue(
    _ change: consuming PendingChange,
    for key: KeyIndex,
    at now: Moment,
    delay: Duration? = nil,
    leads: Bool = true
  ) {
    if let replaced = queue.enqueue(change, for: key, at: now, delay: delay, leads: leads) {
      log.statistics.collapsed += 1
      if log.hasReader(of: replaced) { emitReplaced(replaced, of: key, at: now) }
    }
    if sendQueue.hasRepetition(key) { endRepetition(of: key, reason: Delivery.newerValue, at: now) }
  }

  private mutating func emitReplaced(_ replaced: PendingChange, of key: KeyIndex, at now: Moment) {
    // What waits now counts the replaced value too.
    let collapsed = queue.pending(key).map { $0.collapsed - 1 } ?? 0
    log.emit(
      .superseded,
      of: replaced,
      collapsed: max(collapsed, 0),
      reason: Delivery.newerValue,
      for: key,
      facts[key],
      at: now
    )
  }

  /// Ends the quiet period of `key`; `false` when nothing was pending.
  @discardableResult
  package mutating func flush(_ key: KeyIndex, at now: Moment) -> Bool {
    switch queue.flush(key, at: now) {
    case .run(let run):
      settle(run, at: now)
      return true
    case .markedDue: return true
    case .nothing: return false
    }
  }

  // MARK: - Time

  /// The next moment at which anything here is due, or a message can be sent.
  func nextDeadline(after now: Moment) -> Moment? {
    let earliest = Moment.earlier(queue.nextDeadline, nextTimeout)
    return isClosing ? earliest : Moment.earlier(earliest, sendQueue.nextToken(after: now))
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
      // Of an action, those behind it have times to live of their own.
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
      retainedOverdue(at: now)
    } else {
      return sendQueue.endPresumed(at: due)
    }
    return true
  }

  // MARK: - What keys show

  /// The newest value that is pending or in flight, otherwise what the device has.
  func expectedValue(of key: KeyIndex) -> Value? {
    queue.pending(key)?.value.value ?? sendQueue[key]?.value ?? deliveries[key].expected
  }

  /// Shows as the target what the device will have; a group's key shows what its members will.
  mutating func refreshTarget(_ key: KeyIndex) {
    guard !isAction(key), !facts[key].isGroup else { return }
    log.statuses.setTarget(expectedValue(of: key), of: key)
  }

  @inline(__always)
  mutating func setTarget(_ value: Value?, of key: KeyIndex) {
    if !isAction(key) { log.statuses.setTarget(value, of: key) }
  }

  /// Emits a phase of a command.
  mutating func emit(
    _ phase: Phase,
    of command: Command,
    reason: String? = nil,
    for key: KeyIndex,
    at now: Moment
  ) {
    log.emit(phase, of: command, reason: reason, for: key, facts[key], at: now)
    guard facts[key].hasImplications else { return }
    switch phase {
    case .accepted, .sending, .sent, .confirmed: break
    case .unchanged, .superseded, .cancelled, .rejected, .failed, .expired:
      endRiders(of: key, with: command, at: now)
    }
  }
}

/// What becomes of commands that were sent: the broker answers, the device reports, time passes.
extension CommandDispatcher {
  // MARK: - From the broker

  /// Takes the broker's answer to a message; a token that was answered before is ignored.
  package mutating func finish(
    _ token: UInt64,
    _ outcome: CommandPublish.Outcome,
    at now: Moment
  ) {
    for key in deliveries.finish(token) {
      migrate(key, at: now)
      sendQueue.acknowledge(key)
      switch outcome {
      case .acknowledged: acknowledged(key, at: now)
      case .refused(let reason): apply(deliveries.update(key) { $0.fail(reason) }, to: key, at: now)
      case .lost: lost(key, at: now)
      }
    }
  }

  private mutating func acknowledged(_ key: KeyIndex, at now: Moment) {
    log.statistics.acknowledged += 1
    if let flight = deliveries[key].inFlight, !flight.isEnded {
      emit(.sent, of: flight.command, for: key, at: now)
    }
    let verdict = deliveries.acknowledge(
      key,
      confirmation: facts[key].canConfirm ? registry.definition(of: key).property.confirm : nil,
      isAction: isAction(key),
      at: now
    )
    apply(verdict, to: key, at: now)
    if !facts[key].canConfirm { sendQueue.cannotConfirm(key, at: now) }
  }

  /// The connection ended before the answer: the newest value of the key is sent again.
  private mutating func lost(_ key: KeyIndex, at now: Moment) {
    let (isAction, hasNewer) = (isAction(key), hasNewer(key))
    let verdict = deliveries.update(key) { delivery in
      if isAction { return delivery.fail("the connection to the broker was lost") }
      return hasNewer ? delivery.supersede() : delivery.retry(unconfirmed: false)
    }
    apply(verdict, to: key, at: now)
  }

  /// Whether something newer than the command in flight waits.
  private func hasNewer(_ key: KeyIndex) -> Bool { sendQueue[key] != nil || queue.isPending(key) }

  /// The device did not show the value in time.
  mutating func confirmationOverdue(_ key: KeyIndex, at now: Moment) {
    guard let confirmation = registry.definition(of: key).property.confirm else {
      preconditionFailure("A confirmation is overdue that nothing asks for.")
    }
    sendQueue.lost(key, at: now)
    let verdict = deliveries.timeOut(
      key,
      of: facts[key].device,
      confirmation,
      hasNewer: hasNewer(key),
      mayRetry: !isClosing
    )
    apply(verdict, to: key, at: now)
  }

  /// The device of a key is at rest at `due`, wherever that is, unless a report or a reload has
  /// changed that.
  mutating func rest(_ key: KeyIndex, at due: Moment, _ now: Moment) {
    guard let moment = deliveries[key].restsAt, moment <= due else { return }
    // The attempt before may have reached the device: what it reports is about that one.
    if sendQueue.hasRepetition(key) {
      return deliveries.update(key) { $0.postponeRest(at: now) }
    }
    let keepsTarget = isImpliedOtherwise(key)
    deliveries.update(key) { $0.rest(keepsTarget: keepsTarget) }
    refreshTarget(key)
  }

  // MARK: - From the device

  /// Takes a value that a device reported for a property, as found on the wire.
  ///
  /// - Returns: The value, and whether someone set it at the device; `nil` for what is no value of
  ///   the property.
  mutating func reported(
    _ key: KeyIndex,
    _ wire: JSONValue,
    at now: Moment
  ) -> (value: Value, isByHand: Bool)? {
    deliveries.deviceResponded(facts[key].device)
    let property = registry.definition(of: key).property
    guard let value = property.value(fromWire: wire) else { return nil }
    let repetition = sendQueue.hasRepetition(key) ? sendQueue[key] : nil
    let (isImplied, movesActualOnly) = (isBeingImplied(key), isImpliedOtherwise(key))
    var report = deliveries.update(key) {
      $0.report(
        value,
        wire,
        repetition: repetition,
        isImplied: isImplied,
        movesActualOnly: movesActualOnly,
        property,
        at: now
      )
    }
    if repetition != nil, facts[key].hasImplications, hasRider(key),
      case .ended(_, .confirmed, _) = report.verdict
    {
      report.verdict = .none  // What was lost with it is sent in its message.
    }
    if report.isNew { log.statuses.recordReport(for: key, at: now) }
    if repetition != nil, case .ended = report.verdict { _ = sendQueue.remove(key) }
    apply(report.verdict, to: key, at: now)
    if report.isNew, facts[key].hasImplications { endHolds(by: value, of: key) }
    return (value, report.isNew && report.isByHand)
  }

  /// Whether the device reports another property otherwise than `key` implies: what it reports of
  /// `key` then is not what anyone wants, as with a lamp that fades out.
  private func isImpliedOtherwise(_ key: KeyIndex) -> Bool {
    guard facts[key].hasImplications else { return false }
    for other in relations[key].implied {
      if let actual = deliveries[other.key].actual, actual != other.value { return true }
    }
    return false
  }

  /// The device reports what other keys imply: their reports count again.
  private mutating func endHolds(by value: Value, of key: KeyIndex) {
    for other in relations[key].implying where other.value == value {
      deliveries.update(other.key) { $0.endHold() }
      refreshTarget(other.key)
    }
  }

  /// Takes a report that is no value of its property, and may be all the same something to read.
  ///
  /// - Returns: Whether it is the first report of the key that cannot be read.
  mutating func reportedWithoutValue(_ key: KeyIndex, _ wire: JSONValue, isReadable: Bool) -> Bool {
    if !deliveries[key].reception.isHeard { log.statuses.markChanged(key) }
    guard isReadable else { return deliveries.reportUnreadable(key, wire) }
    deliveries.update(key) { $0.reportWithoutValue(isReadable: true) }
    return false
  }

  /// Takes a device's own acknowledgement of a value; its state may follow.
  mutating func accepted(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    let definition = registry.definition(of: key)
    apply(deliveries.update(key) { $0.accept(wire, definition.property) }, to: key, at: now)
  }

  /// Takes a device's reply to the message with the number `message`; `problem` is why it refused.
  mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    guard deliveries[key].awaitsReply(to: message) else { return }
    deliveries.deviceResponded(facts[key].device)
    apply(deliveries.update(key) { $0.reply(problem: problem) }, to: key, at: now)
  }

  /// The connection to the broker was made or ended.
  ///
  /// `hasRetained`: the broker sends what it retains of devices until
  /// ``retainedCompleted(of:at:)``, or for two seconds; what depends on it waits.
  package mutating func connectionChanged(
    isUp: Bool,
    hasRetained: Bool = false,
    at now: Moment
  ) {
    let unable = sendQueue.connectionChanged(isUp: isUp, hasRetained: hasRetained, at: now)
    failOffline(unable, at: now)
  }

  /// The connection of some devices was made, and the broker sends what it retains of them, until
  /// ``retainedCompleted(of:at:)``, or for two seconds.
  package mutating func retainedFollow(of devices: [Int], at now: Moment) {
    sendQueue.retainedFollow(of: devices, at: now)
  }

  /// The broker has sent what it retains of these devices, `nil` for all.
  package mutating func retainedCompleted(of devices: [Int]? = nil, at now: Moment) {
    failOffline(sendQueue.retainedCompleted(of: devices), at: now)
  }

  /// Waits no longer for what the broker has not sent in time.
  mutating func retainedOverdue(at now: Moment) {
    failOffline(sendQueue.retainedOverdue(at: now), at: now)
  }

  /// One of a device's availability sources reported.
  package mutating func availabilityChanged(
    of device: Int,
    source: Int,
    isOnline: Bool,
    at now: Moment
  ) {
    let unable = sendQueue.availabilityChanged(of: device, source: source, isOnline: isOnline)
    failOffline(unable, at: now)
  }

  // MARK: - The end of commands in flight

  /// Ends what is in flight, whatever the device will show of it.
  mutating func abandon(_ key: KeyIndex, as phase: Phase, reason: String?, at now: Moment) {
    let verdict = deliveries.update(key) { $0.abandon(as: phase, reason: reason) }
    apply(verdict, to: key, at: now)
  }

  /// Carries out what was decided about a command.
  mutating func apply(_ verdict: Delivery.Verdict, to key: KeyIndex, at now: Moment) {
    switch verdict {
    case .none: break
    case .ended(let command, let phase, let reason):
      sendQueue.ended(key, isConfirmed: phase == .confirmed, at: now)
      if phase == .failed, facts[key].hasImplications {
        for other in relations[key].implied { deliveries.update(other.key) { $0.endImplication() } }
      }
      emit(phase, of: command, reason: reason, for: key, at: now)
    case .repeated(let command):
      sendQueue.ended(key, isConfirmed: false, at: now)
      insert(command, for: key, at: now)
    }
    refreshTarget(key)
  }
}

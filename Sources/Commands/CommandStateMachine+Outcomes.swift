// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
package import JSON
package import LastOut
package import Values

/// What becomes of commands that were sent: the broker answers, the device reports, time passes.
extension CommandStateMachine {
  // MARK: - From the broker

  /// Takes the broker's answer to a message; a token that was answered before is ignored.
  package mutating func finish(
    _ token: UInt64,
    _ outcome: PublishOutcome,
    at now: Moment
  ) {
    var keys = deliveries.publishes.remove(token)
    if case .lost = outcome, keys.count > 1 {
      // What rides ends with the command that it contradicts: that one is decided first.
      keys = keys.filter { !rodeInFlight($0) } + keys.filter { rodeInFlight($0) }
    }
    for key in keys {
      migrate(key, at: now)
      sendQueue.acknowledge(key)
      switch outcome {
      case .acknowledged: brokerAcknowledged(key, at: now)
      case .refused(let reason): apply(deliveries.update(key) { $0.fail(reason) }, to: key, at: now)
      case .lost: lost(key, at: now)
      }
    }
  }

  private func rodeInFlight(_ key: KeyIndex) -> Bool {
    deliveries[key].inFlight?.command.change.rides ?? false
  }

  private mutating func brokerAcknowledged(_ key: KeyIndex, at now: Moment) {
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
    if !facts[key].canConfirm { sendQueue.lanes.cannotConfirm(key, at: now) }
  }

  private static let connectionLost = "the connection to the broker was lost"

  /// The connection ended before the answer: the newest value of the key is sent again.
  private mutating func lost(_ key: KeyIndex, at now: Moment) {
    let (isAction, hasNewer) = (isAction(key), hasNewer(key))
    let verdict = deliveries.update(key) { delivery in
      if isAction { return delivery.fail(Self.connectionLost) }
      return hasNewer ? delivery.supersede() : delivery.retry(unconfirmed: false)
    }
    apply(verdict, to: key, at: now)
    releaseRider(key, at: now)
  }

  /// Lets what rode in a message that was lost wait for what it contradicts.
  ///
  /// If that has ended, it is sent alone, unless it would still contradict what the device will
  /// have.
  private mutating func releaseRider(_ key: KeyIndex, at now: Moment) {
    guard let rider = sendQueue[key], rider.change.rides else { return }
    var isContradicting = false
    for implied in relations[key].implied {
      guard let expected = base(of: implied.key),
        !implied.agrees(rider.value, with: expected)
      else { continue }
      if sendQueue[implied.key] != nil || queue.isPending(implied.key) { return }
      isContradicting = true
    }
    guard isContradicting else { return sendQueue.ride(key, false) }
    deliveries.update(key) { $0.abandonRepetition(of: rider.value) }
    endWaitingCommand(of: key, as: .failed, reason: Self.connectionLost, at: now)
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
  @discardableResult
  package mutating func reported(
    _ key: KeyIndex,
    _ wire: JSONValue,
    at now: Moment
  ) -> ReportOutcome {
    migrate(key, at: now)
    sendQueue.reported(key)
    guard let report = reportedValue(of: key, wire, at: now) else {
      // A device reports null for what it does not know, and an action has no value.
      let facts = facts[key]
      let isUnknown = registry.definition(of: key).property.isUnknown(wire)
      let isReadable = isUnknown || facts.isAction || facts.hasForms
      let isFirst = reportedWithoutValue(key, wire, isReadable: isReadable)
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
    if facts[key].hasForms { return .nothing }
    let isFirst = reportedWithoutValue(key, payload, isReadable: false)
    return .unreadable(isFirst: isFirst)
  }

  /// Takes a device's own acknowledgement of a value; its state may follow.
  package mutating func acknowledged(_ key: KeyIndex, _ wire: JSONValue, at now: Moment) {
    migrate(key, at: now)
    let definition = registry.definition(of: key)
    apply(deliveries.update(key) { $0.accept(wire, definition.property) }, to: key, at: now)
  }

  /// Takes a device's reply to the message with the number `message`; `problem` is why it refused.
  package mutating func replied(
    _ key: KeyIndex,
    to message: Int64,
    problem: String?,
    at now: Moment
  ) {
    migrate(key, at: now)
    guard deliveries[key].awaitsReply(to: message) else { return }
    deliveries.deviceResponded(facts[key].device)
    apply(deliveries.update(key) { $0.reply(problem: problem) }, to: key, at: now)
  }

  /// Takes a value that a device reported for a property, as found on the wire.
  ///
  /// - Returns: The value, and whether someone set it at the device; `nil` for what is no value of
  ///   the property.
  private mutating func reportedValue(
    of key: KeyIndex,
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

  /// Forgets what the sources of a device's availability reported, of which no commands wait.
  package mutating func forgetAvailability(of device: Int) {
    sendQueue.forgetAvailability(of: device)
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

/// What a device's report says.
package enum ReportOutcome: Hashable, Sendable {
  case value(Value)
  /// It can be read, and has no value.
  case nothing
  /// It cannot be read; `isFirst` for the first such report of the property.
  case unreadable(isFirst: Bool)
}

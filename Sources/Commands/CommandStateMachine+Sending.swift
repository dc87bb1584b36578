// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
package import LastOut
package import Values

/// Settled values: they wait to be sent as commands, and are sent.
extension CommandStateMachine {
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

  // MARK: - From quiet to waiting

  /// Lets values that need no quiet wait to be sent: leading ones.
  @inline(__always)
  mutating func settleReady(at now: Moment) {
    while let run = queue.nextReady(at: now) { settle(run, at: now) }
  }

  /// Lets values that are quiet wait to be sent.
  mutating func settleQuiet(at now: Moment) {
    while let run = queue.nextRun(at: now) {
      log.statistics.record(lateness: run.due.duration(to: now))
      settle(run, at: now)
    }
  }

  /// A value is quiet: it waits to be sent, or proves unnecessary.
  mutating func settle(_ run: LastOutCore<PendingChange>.Run, at now: Moment) {
    queue.finish(run.key, at: now)
    var command = Command(change: run.value, collapsed: run.collapsed)
    if migrate(run.key, at: now) {
      if let reason = registry[run.key].reasonToEnd(command.value) {
        endWaitingCommand(of: run.key, as: .cancelled, reason: reason, at: now)
        return emit(.cancelled, of: command, reason: reason, for: run.key, at: now)
      }
      setTarget(command.value, of: run.key)
    }
    guard deviceHas(command.value, run.key) else {
      return makeReady(command, for: run.key, at: now)
    }
    command.collapsed += supersedeWaitingCommand(of: run.key, at: now)
    _ = sendQueue.remove(run.key)
    emit(.unchanged, of: command, for: run.key, at: now)
    refreshTarget(run.key)
  }

  /// Lets a command wait to be sent, in place of an older one; an action behind those that wait.
  mutating func makeReady(_ command: Command, for key: KeyIndex, at now: Moment) {
    var command = command
    if !isAction(key) { command.collapsed += supersedeWaitingCommand(of: key, at: now) }
    insert(command, for: key, at: now)
  }

  /// Emits that a newer command takes the place of the one that waits.
  ///
  /// - Returns: How many more changes the newer one stands for.
  private mutating func supersedeWaitingCommand(of key: KeyIndex, at now: Moment) -> Int {
    guard let older = sendQueue[key] else { return 0 }
    log.statistics.collapsed += 1
    emit(.superseded, of: older, reason: Delivery.newerValue, for: key, at: now)
    return older.collapsed + 1
  }

  /// Lets a command wait to be sent; a momentary one fails if its device is offline.
  mutating func insert(_ command: Command, for key: KeyIndex, at now: Moment) {
    if facts[key].hasImplications { makeRidersReady(of: key, at: now) }
    if !sendQueue.insert(command, for: key) { failOffline([key], at: now) }
  }

  /// Ends momentary commands that cannot wait for an offline broker or device.
  mutating func failOffline(_ keys: [KeyIndex], at now: Moment) {
    for key in keys {
      endWaitingCommand(of: key, as: .failed, reason: sendQueue.waitReason(of: key), at: now)
    }
  }

  /// Ends the command that waits to be sent; of an action all, in order.
  mutating func endWaitingCommand(
    of key: KeyIndex,
    as phase: Phase,
    reason: String?,
    at now: Moment
  ) {
    guard sendQueue.hasCommand(key) else { return }
    while let command = sendQueue.remove(key) {
      emit(phase, of: command, reason: reason, for: key, at: now)
    }
    refreshTarget(key)
  }

  /// Ends a command that waits to be repeated: nothing newer may be followed by it.
  mutating func endRepetition(of key: KeyIndex, reason: String, at now: Moment) {
    guard sendQueue.hasRepetition(key), let command = sendQueue.remove(key) else { return }
    deliveries.update(key) { $0.abandonRepetition(of: command.value) }
    emit(.superseded, of: command, reason: reason, for: key, at: now)
  }

  /// Ends the value of `key` that waits for quiet and the command that waits to be sent; `false`
  /// when there were none.
  mutating func endQueued(
    _ key: KeyIndex,
    as phase: Phase,
    reason: String?,
    exceptUrgent: Bool = false,
    at now: Moment
  ) -> Bool {
    var hasEnded = endPending(key, as: phase, reason: reason, at: now)
    while !(exceptUrgent && sendQueue[key]?.isUrgent ?? false), let command = sendQueue.remove(key)
    {
      hasEnded = true
      emit(phase, of: command, reason: reason, for: key, at: now)
    }
    return hasEnded
  }

  /// Ends the value of `key` that waits for quiet; `false` when there was none.
  @discardableResult
  mutating func endPending(
    _ key: KeyIndex,
    as phase: Phase,
    reason: String?,
    at now: Moment
  ) -> Bool {
    guard case .cancelled(let change, let collapsed) = queue.cancel(key) else { return false }
    let command = Command(change: change, collapsed: collapsed)
    emit(phase, of: command, reason: reason, for: key, at: now)
    return true
  }

  /// Whether the device is online and known to have `value` already.
  func deviceHas(_ value: Value, _ key: KeyIndex) -> Bool {
    guard sendQueue.isOnline(key), !sendQueue.isStale(key), !isAction(key),
      !registry.definition(of: key).property.always
    else { return false }
    return shows(value, key) && !(facts[key].hasImplications && hasRider(key))
  }

  /// Whether the device shows `value`, and what that implies.
  func shows(_ value: Value, _ key: KeyIndex) -> Bool {
    deliveries[key].shows(value, registry.definition(of: key).property)
      && (!facts[key].hasImplications || showsImplied(by: value, of: key))
  }

  // MARK: - To the broker

  /// The next message that may be sent now; `nil` when there is none.
  ///
  /// Call it while the client can publish.
  package mutating func nextPublish(at now: Moment) -> CommandPublish? {
    while let key = sendQueue.next(at: now, ignoresLimits: isClosing) {
      // Its value may not fit any more, or its device may have another lane.
      if migrate(key, at: now) {
        if let reload, reload.isStepFull { return nil }
        continue
      }
      guard isUnnecessary(key) else { return send(key, at: now) }
      endWaitingCommand(of: key, as: .unchanged, reason: nil, at: now)
    }
    return nil
  }

  /// Whether the device came to have the value while its command waited.
  private func isUnnecessary(_ key: KeyIndex) -> Bool {
    guard let command = sendQueue[key] else {
      preconditionFailure("A key is in its lane, but has no command.")
    }
    return !command.isRepeated && !command.isUrgent && deviceHas(command.value, key)
  }

  /// Sends the command of `lead`, in one message with those that merge with it, or with those of
  /// its group.
  private mutating func send(_ lead: KeyIndex, at now: Moment) -> CommandPublish {
    sendQueue.takeTurn(lead)
    let group = GroupMessage.led(by: lead, in: &self, at: now)
    let keys = group?.keys ?? gather(lead, at: now)
    let commands = sendQueue.dequeue(keys, for: group?.name, at: now)
    let message = messageNumber(of: commands)
    let transitionTime = commands.map(\.transitionTime).max() ?? .zero
    for (key, command) in zip(keys, commands) {
      var flight = InFlightCommand(
        command: command,
        message: message,
        transitionTime: transitionTime,
        restTime: restTime(of: key, transitionTime)
      )
      flight.isCarried = group != nil && command.change.origin?.groupCommand == nil
      if let replaced = deliveries.update(key, { $0.send(flight, at: now) }) {
        emit(.superseded, of: replaced, reason: Delivery.newerValue, for: key, at: now)
      }
      emit(.sending, of: command, for: key, at: now)
      if facts[key].isBehind { overtake(by: key) }
      if command.isUrgent { outdateEnded(by: key, at: now) }
    }
    imply(by: keys, commands, at: now)
    log.statistics.published += 1
    return CommandPublish(
      commands,
      of: keys,
      as: group?.parts,
      in: registry,
      token: deliveries.publishes.insert(keys),
      message: message,
      at: now
    )
  }

  /// What an urgent command ends is not known until the device reports it: a STOP stops somewhere.
  private mutating func outdateEnded(by key: KeyIndex, at now: Moment) {
    for other in relations[key].ends {
      sendQueue.outdate(other)
      if facts[other].travels { deliveries.update(other) { $0.drive(at: now) } }
    }
  }

  /// An urgent command that would have ended the one of `key`, which has left, is not repeated
  /// after it.
  private mutating func overtake(by key: KeyIndex) {
    for other in relations[key].ahead where deliveries[other].inFlight?.command.isUrgent == true {
      deliveries.update(other) { $0.overtake() }
    }
  }

  /// How long after its last progress the device of `key` is at rest; `nil` for a key that does not
  /// travel.
  private func restTime(of key: KeyIndex, _ transitionTime: Duration) -> Duration? {
    guard facts[key].travels else { return nil }
    let within = registry.definition(of: key).property.confirm?.within ?? Confirmation().within
    return max(within, transitionTime)
  }

  /// The number of the message with these commands.
  ///
  /// A repetition has the number of the first attempt: whichever reply arrives is about the value.
  func messageNumber(of commands: [Command]) -> Int64 {
    Int64((settings.firstMessage &+ (commands.first?.change.number ?? 0)) & 0x7FFF_FFFF)
  }

  /// The keys whose commands are sent with that of `lead`; those that are pending become ready.
  private mutating func gather(_ lead: KeyIndex, at now: Moment) -> [KeyIndex] {
    sendQueue.companions(of: lead).filter { key in
      if key != lead {
        guard !GroupMessage.mayCarry(key, in: self) else { return false }
        migrate(key, at: now)
        flush(key, at: now)
      }
      return sendQueue[key] != nil
    }
  }
}

/// What keys show, and what waits of them.
///
/// What every change asks is inlined: a call would copy the whole dispatcher for its time.
extension CommandStateMachine {
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
    case .accepted, .sending, .sent, .confirmed: return
    case .unchanged: deliveries.update(key) { $0.endHold() }
    case .superseded, .cancelled, .rejected, .failed, .expired: break
    }
    endRiders(of: key, with: command, at: now)
  }

  package func status(_ key: KeyIndex) -> KeyStatus {
    log.statuses.status(key, actual: deliveries[key].actual)
  }

  /// Whether the property has a state topic and has never been reported.
  package func isUnheard(_ key: KeyIndex) -> Bool {
    facts[key].isReported && !deliveries[key].reception.isHeard
  }

  /// Whether a device has properties with a state topic, and none was ever reported.
  package func isUnheard(device: Int) -> Bool {
    var isUnheard = false
    for number in registry.indices(ofDevice: device) where facts[KeyIndex(number)].isReported {
      if deliveries[KeyIndex(number)].reception.isHeard { return false }
      isUnheard = true
    }
    return isUnheard
  }

  /// The reports that could not be read.
  package var unreadable: UnreadableReports { deliveries.unreadable }

  /// Whether `key` stands for momentary commands rather than a value.
  @inline(__always)
  package func isAction(_ key: KeyIndex) -> Bool { facts[key].isAction }

  /// Whether `value` is one that is sent at once.
  @inline(__always)
  package func isUrgent(_ value: Value, of key: KeyIndex) -> Bool {
    facts[key].hasUrgent && registry.definition(of: key).property.urgent.contains(value)
  }

  /// The number of values that wait for quiet or to be sent.
  @inline(__always)
  package var pendingCount: Int { queue.pendingCount + sendQueue.count }

  /// Whether everything that can be sent was sent and answered.
  package var isDrained: Bool {
    sendQueue.unacknowledgedCount == 0 && queue.pendingCount == 0 && !sendQueue.hasReady
      && (sendQueue.count == 0 || !sendQueue.retained.areMissing)
  }

  /// Whether a value of `key` waits for quiet, to be sent, or for its acknowledgement.
  func isUnsent(_ key: KeyIndex) -> Bool {
    if sendQueue[key] != nil || queue.isPending(key) { return true }
    guard let flight = deliveries[key].inFlight else { return false }
    return flight.stage == .sending && !flight.isEnded
  }

  /// Whether `value` would not be sent, because the device is known to have it.
  package func isUnchanged(_ value: Value, of key: KeyIndex) -> Bool {
    !isUrgent(value, of: key) && deviceHas(value, key)
  }
}

/// Devices that sleep: their commands wait until the device reports itself.
extension CommandStateMachine {
  /// Whether commands of a key wait until its device reports itself.
  package func sleeps(_ key: KeyIndex) -> Bool { facts[key].sleeps }

  /// A sleeping device reported itself: what waits of it is sent, even before it is quiet, because
  /// the device may not listen for long.
  package mutating func deviceAwoke(_ device: Int, at now: Moment) {
    guard registry.sleeps(device) else { return }
    deliveries.deviceResponded(device)
    for number in registry.indices(ofDevice: device) {
      migrate(KeyIndex(number), at: now)
      flush(KeyIndex(number), at: now)
    }
    sendQueue.deviceAwoke(device)
  }
}

/// A key's new definition; ``DefinitionReload`` decides when a key gets it at the latest.
extension CommandStateMachine {
  /// Gives a key its new definition if a reload has not done so yet: ends what no longer fits.
  ///
  /// Call it before anything else happens to a key.
  ///
  /// - Returns: Whether the key got its new definition now.
  @inline(__always)
  @discardableResult
  package mutating func migrate(_ key: KeyIndex, at now: Moment) -> Bool {
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
    endForeignChanges(of: key, at: now)
    return true
  }

  /// Ends what waits and may not be sent any more; what is older than that ends with it.
  private mutating func endForeignValues(
    of key: KeyIndex,
    _ entry: Registry.Entry,
    at now: Moment
  ) {
    if let pending = queue.pending(key)?.value.value, let reason = entry.reasonToEnd(pending) {
      _ = endQueued(key, as: .cancelled, reason: reason, at: now)
    } else if sendQueue.commandCount(key) > 1 {
      endForeignActions(of: key, entry, at: now)
    } else if let value = sendQueue[key]?.value, let reason = entry.reasonToEnd(value) {
      endWaitingCommand(of: key, as: .cancelled, reason: reason, at: now)
    }
  }

  /// Ends those of several actions that may not be sent any more: all, if the property is no
  /// action.
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

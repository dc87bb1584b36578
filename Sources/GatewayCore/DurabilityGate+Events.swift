// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import LastOut
import Values

/// Events of commands: which of them may be emitted now, and which wait for a commit.
extension DurabilityGate {
  /// Records the events of the state machine in order and appends those that may be emitted now.
  mutating func record(
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    var hasBarriers = false
    while !commands.log.events.isEmpty {
      swap(&batch, &commands.log.events)
      outbox.transcript?.append(contentsOf: batch)
      for index in batch.indices {
        next = index + 1
        hasBarriers = record(batch[index], in: &commands, &outbox, at: now) || hasBarriers
      }
      batch.removeAll(keepingCapacity: batch.capacity <= Self.keptCapacity)
      accepted = [:]
      if !overtaken.isEmpty, commands.log.events.isEmpty {
        rejectOvertaken(in: &commands, &outbox, at: now)
      }
    }
    // What must not follow a command must leave the disk before it; the next commit does not wait.
    if hasBarriers { flush(at: now) }
  }

  /// The command that ends directly after the event that is recorded, because that one is newer.
  private func number(replacedBy event: CommandEvent) -> UInt64? {
    guard next < batch.count, case .superseded = batch[next].phase, batch[next].key == event.key
    else { return nil }
    return batch[next].number
  }

  /// Whether a value of a key is accepted after the event that is recorded: its row is not known yet.
  private mutating func isAcceptedLater(_ key: KeyIndex) -> Bool {
    if accepted.isEmpty {
      for (place, event) in batch.enumerated() where event.phase == .accepted {
        accepted[event.key] = place
      }
    }
    return accepted[key].map { $0 >= next } ?? false
  }

  /// - Returns: Whether a command now waits for rows of other keys to be removed.
  private mutating func record(
    _ event: CommandEvent,
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) -> Bool {
    var isReleasing = false
    let isBarrier = withheldKeys.isBarrier(event.key)
    if withheldKeys.isUrgent(event.number, of: event.key), event.phase != .accepted {
      withheldKeys.urgentFinished(event.key, in: &commands, at: now)
    }
    switch event.phase {
    case .accepted:
      return accept(event, in: &commands, &outbox, at: now)
    case .sending:
      if rows.sending(event, in: commands.registry) {
        withheldKeys.commandFinished(event.key, rows)
      }
    case .sent, .confirmed, .unchanged:
      isReleasing = ended(event, promptly: isBarrier, in: commands.registry, at: now)
    case .superseded, .cancelled, .rejected, .failed, .expired:
      isReleasing = ended(event, promptly: true, in: commands.registry, at: now)
    }
    if event.isHeard(isWatched: commands.log.isWatched) {
      if queue.contains(event.key) {
        queue.append(event)
      } else {
        outbox.emit(event)
      }
    }
    if isReleasing {
      for event in queue.removeAll(of: event.key) {
        outbox.emit(fault.map { inMemory(event, $0) } ?? event)
      }
    }
    return isBarrier && fault == nil
  }

  /// Records that a crash must not, or need not, send a command again.
  ///
  /// `promptly`: its row is removed with the next commit; else lazily.
  ///
  /// - Returns: Whether the queued events of its key may be emitted without a commit.
  private mutating func ended(
    _ event: CommandEvent,
    promptly: Bool,
    in registry: Registry,
    at now: Moment
  ) -> Bool {
    let isReleasing = rows.ended(event, promptly: promptly, in: registry, at: now)
    guard let isReleasing else { return false }
    withheldKeys.commandFinished(event.key, rows)
    return isReleasing
  }

  private mutating func accept(
    _ event: CommandEvent,
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) -> Bool {
    var others = commands.rivals(
      of: event.key,
      event.value,
      isUrgent: event.isUrgent,
      isAccepted: true
    )
    for place in others.indices where others[place].agrees {
      others[place].agrees = !isAcceptedLater(others[place].key)
    }
    guard !event.isAction, let value = event.value, let expiresAt = event.expiresAt else {
      if event.isHeard(isWatched: commands.log.isWatched) { outbox.emit(event) }
      if others.isEmpty { return false }
      withholdIfNeeded(event, nil, before: others, in: &commands, at: now)
      return withheldKeys.hasBarriers(event.key)
    }
    let sequence = rows.accept(
      event,
      value,
      replacing: number(replacedBy: event),
      until: expiresAt,
      in: commands.registry
    )
    if let fault {
      acceptInMemory(event, sequence, fault, before: others, &commands, &outbox, at: now)
      return false
    }
    if event.isUrgent || !others.isEmpty || !withheldKeys.contains(event.key) {
      withholdIfNeeded(event, sequence, before: others, in: &commands, at: now)
    }
    if event.isHeard(isWatched: commands.log.isWatched) {
      queue.append(event, until: sequence)
    }
    return withheldKeys.hasBarriers(event.key)
  }

  private mutating func withholdIfNeeded(
    _ event: CommandEvent,
    _ sequence: UInt64?,
    before others: [Rival],
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    let command = WithheldKeys.Command(
      key: event.key,
      sequence: sequence,
      others: others,
      ended: rows.plan.sequence,
      urgentNumber: event.isUrgent ? event.number : nil
    )
    withheldKeys.add(command, &rows, in: &commands, at: now)
  }

  // MARK: - Without a working disk

  /// Accepts a value that cannot be written; its reply says so.
  ///
  /// If a crash would bring back an older value, it is rejected instead, once all that has happened
  /// to its key is recorded.
  private mutating func acceptInMemory(
    _ event: CommandEvent,
    _ sequence: UInt64,
    _ fault: JournalFault,
    before others: [Rival],
    _ commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    let isOvertaken = overtaken.contains(event.key)
    // A change may be here that was not refused when it was received: the journal still worked, or
    // it is a step that waited for the device's state.
    let refusal = refusal(of: event.key, isUrgent: event.isUrgent, excluding: others, at: now)
    if refusal != nil {
      queue.append(event, until: sequence)
      if !isOvertaken { overtaken.append(event.key) }
      return
    }
    if !isOvertaken { rows.told(event.key) }
    if event.isUrgent || !others.isEmpty {
      withholdIfNeeded(event, rows.plan.sequence, before: others, in: &commands, at: now)
    }
    guard event.isHeard(isWatched: commands.log.isWatched) else { return }
    if isOvertaken { return queue.append(event, until: sequence) }
    outbox.emit(inMemory(event, fault))
  }

  func inMemory(_ event: CommandEvent, _ fault: JournalFault) -> CommandEvent {
    guard case .accepted = event.phase else { return event }
    var event = event
    event.reason = memoryReason(fault)
    return event
  }

  private mutating func rejectOvertaken(
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    let keys = overtaken
    overtaken = []
    guard let fault else { return }
    for key in keys { reject(key, fault, in: &commands, &outbox, at: now) }
  }

  /// Rejects the accepted commands of a key that wait, except an urgent one: a crash would bring
  /// back something older.
  ///
  /// Everything that has happened to the key is recorded.
  mutating func reject(
    _ key: KeyIndex,
    _ fault: JournalFault,
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    let isWatched = commands.log.isWatched
    let queued = queue.removeAll(of: key)
    guard !rows.isNewestUrgent(key), commands.hasRefusable(key) else {
      // What was accepted is over, or stops the device.
      for event in queued where event.isHeard(isWatched: isWatched) {
        outbox.emit(inMemory(event, fault))
      }
      return
    }
    var restored = rows.popRestorable(key, at: now)
    if commands.isUrgentWaiting(key) { restored = nil }  // It ended what would be restored.
    let reason = overtakenReason(fault)
    let lastSent = rows.lastSent(of: key)
    var rejected: Set<UInt64> = []
    for event in queued {
      if event.phase == .accepted, !event.isUrgent, event.number > lastSent {
        rejected.insert(event.number)
        outbox.emit(event.rejected(reason))
      } else if rejected.contains(event.number)
        || event.number == restored?.number && event.phase != .accepted
      {
        continue
      } else if event.isHeard(isWatched: isWatched) {
        outbox.emit(inMemory(event, fault))
      }
    }
    let count = commands.log.events.count
    commands.refuseWaiting(key, reason: reason, at: now)
    let refused = commands.log.events[count...].map { $0.rejected(reason) }
    commands.log.events.removeSubrange(count...)
    outbox.transcript?.append(contentsOf: refused)
    for event in refused {
      if rejected.contains(event.number) || event.number == restored?.number {
        _ = ended(event, promptly: true, in: commands.registry, at: now)
      } else {
        _ = record(event, in: &commands, &outbox, at: now)
      }
    }
    if let restored { restore(restored, of: key, in: &commands, at: now) }
  }

  /// Lets a value settle again that a rejected one had replaced: it was accepted, and is stored.
  private mutating func restore(
    _ command: DurableCommand,
    of key: KeyIndex,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    let origin = command.origin
    var restored = command
    restored.isWritten = false  // A store that is made again does not have it yet.
    restored.origin = ChangeOrigin(
      of: origin,
      id: identifiers.id(of: command.number, acceptedAt: command.acceptedAt, given: origin?.id),
      group: origin?.group
    )
    restored.number = commands.resume(
      command.value,
      of: key,
      ending: [],
      settles: true,
      at: now,
      expiresAt: command.expiresAt,
      origin: restored.origin,
      options: command.options
    )
    rows.restore(key, restored, in: commands.registry)
  }
}

extension CommandEvent {
  /// The event as the rejection of a command that cannot be kept.
  fileprivate func rejected(_ reason: String) -> CommandEvent {
    var event = self
    event.phase = .rejected
    event.reason = reason
    event.isFinal = true
    event.isNotDurable = true
    return event
  }
}

extension CommandEvent {
  /// Whether anyone receives this event.
  ///
  /// Phases that are published on MQTT always are. Of the others the requester receives `accepted`,
  /// the end of a step that waited for its state, and, if it follows the command, every phase.
  func isHeard(isWatched: Bool) -> Bool {
    switch phase {
    case .unchanged, .cancelled, .rejected, .sent, .confirmed, .failed, .expired: return true
    case .accepted: return isWatched || origin != nil
    case .superseded, .sending:
      guard !isWatched else { return true }
      guard let origin else { return false }
      return origin.wantsPhases || origin.responseTopic != nil || value == nil
    }
  }
}

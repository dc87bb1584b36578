// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import LastOut

/// Events of commands: which of them may be emitted now, and which wait for a commit.
extension DurabilityGate {
  /// Records the events of the state machine in order and appends those that may be emitted now.
  mutating func record(
    in commands: inout CommandStateMachine,
    emitting emissions: inout Emissions,
    at now: Moment
  ) {
    var hasBarriers = false
    while !commands.events.isEmpty {
      let events = takeEvents(of: &commands)
      for (index, event) in events.enumerated() {
        let replaced = Self.number(replacedBy: index, in: events)
        hasBarriers =
          record(event, replacing: replaced, in: &commands, emitting: &emissions, at: now)
          || hasBarriers
      }
    }
    // What a command ends must leave the disk before it; the next commit does not wait.
    if hasBarriers { plan.flush(at: now) }
  }

  /// Takes the events of the state machine out of it.
  private mutating func takeEvents(of commands: inout CommandStateMachine) -> [CommandEvent] {
    var events: [CommandEvent] = []
    swap(&events, &commands.events)
    transcript?.append(contentsOf: events)
    return events
  }

  /// The command that ends directly after the event at `index`, because that one is newer.
  private static func number(replacedBy index: Int, in events: [CommandEvent]) -> UInt64? {
    let next = index + 1
    guard next < events.count, case .superseded = events[next].phase,
      events[next].key == events[index].key
    else { return nil }
    return events[next].number
  }

  /// - Returns: Whether the event's command now waits for rows of other keys to be removed.
  private mutating func record(
    _ event: CommandEvent,
    replacing replaced: UInt64? = nil,
    in commands: inout CommandStateMachine,
    emitting emissions: inout Emissions,
    at now: Moment
  ) -> Bool {
    var isReleasing = false
    let isUrgent = keys[Int(event.key.rawValue)].urgentNumber == event.number
    if isUrgent, event.phase != .accepted { urgentFinished(event.key, in: &commands, at: now) }
    switch event.phase {
    case .accepted:
      return accept(event, replacing: replaced, in: &commands, emitting: &emissions, at: now)
    case .sending: sending(event, in: commands.registry)
    case .sent, .confirmed, .unchanged:
      isReleasing = ended(event, promptly: false, in: commands.registry, at: now)
    case .superseded, .cancelled, .rejected, .failed, .expired:
      isReleasing = ended(event, promptly: true, in: commands.registry, at: now)
    }
    if event.isHeard(isWatched: commands.isWatched) {
      if queue.contains(event.key) {
        queue.append(event)
      } else {
        emissions.append(event)
      }
    }
    if isReleasing {
      for event in queue.removeAll(of: event.key) { emissions.append(event) }
    }
    return false
  }

  private mutating func sending(_ event: CommandEvent, in registry: Registry) {
    let place = Int(event.key.rawValue)
    guard let sequence = keys[place].commands.sending(event.number) else { return }
    waitingChanged(event.key)
    plan.sending(number(of: event.key, in: registry), sequence: sequence)
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
    guard let sequence = keys[Int(event.key.rawValue)].commands.remove(event.number) else {
      return false
    }
    waitingChanged(event.key)
    return plan.ended(
      number(of: event.key, in: registry),
      sequence,
      at: now,
      promptly: promptly
    )
  }

  /// The newest command that waits may be another one now.
  private mutating func waitingChanged(_ key: KeyIndex) {
    let place = Int(key.rawValue)
    if keys[place].isBehind, keys[place].commands.newest.isNone { mayRelease = true }
  }

  private mutating func accept(
    _ event: CommandEvent,
    replacing replaced: UInt64?,
    in commands: inout CommandStateMachine,
    emitting emissions: inout Emissions,
    at now: Moment
  ) -> Bool {
    let place = Int(event.key.rawValue)
    let others = commands.keysEnded(by: event.key, isUrgent: event.isUrgent)
    guard !event.isAction, let value = event.value, let expiresAt = event.expiresAt else {
      if event.isHeard(isWatched: commands.isWatched) { emissions.append(event) }
      if others.isEmpty { return false }
      withholdIfNeeded(event, nil, ending: others, in: &commands, at: now)
      return !keys[place].barriers.isEmpty
    }
    let sequence = accept(event, value, replacing: replaced, expiresAt, in: commands.registry)
    if let fault = plan.fault {
      acceptInMemory(event, fault, ending: others, &commands, emitting: &emissions, at: now)
      return false
    }
    if event.isUrgent || !others.isEmpty || !keys[place].isBehind {
      withholdIfNeeded(event, sequence, ending: others, in: &commands, at: now)
    }
    if event.isHeard(isWatched: commands.isWatched) { queue.append(event, until: sequence) }
    return !keys[place].barriers.isEmpty
  }

  private mutating func withholdIfNeeded(
    _ event: CommandEvent,
    _ sequence: UInt64?,
    ending others: [KeyIndex],
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    withholdIfNeeded(
      event.key,
      sequence,
      ending: others,
      through: plan.sequence,
      urgentNumber: event.isUrgent ? event.number : nil,
      in: &commands,
      at: now
    )
  }

  /// Hands a value to the journal, which writes it with the next commit if it is still the newest
  /// of its key then.
  private mutating func accept(
    _ event: CommandEvent,
    _ value: Value,
    replacing replaced: UInt64?,
    _ expiresAt: Moment,
    in registry: Registry
  ) -> UInt64 {
    let place = Int(event.key.rawValue)
    let isReplacing = replaced.map { keys[place].commands.newest.isNumber($0) } ?? false
    let sequence = plan.accept(
      number(of: event.key, in: registry),
      replacing: isReplacing ? keys[place].commands.newest.sequence : nil,
      at: event.acceptedAt,
      expiresAt: expiresAt,
      isUrgent: event.isUrgent
    )
    let command = DurableCommand(
      number: event.number,
      sequence: sequence,
      isUrgent: event.isUrgent,
      isWritten: false,
      value: value,
      acceptedAt: event.acceptedAt,
      origin: event.origin,
      options: event.options
    )
    if isReplacing {
      keys[place].commands.newest = command
    } else {
      keys[place].commands.push(command)
    }
    return sequence
  }

  // MARK: - Without a working disk

  /// Accepts a value that cannot be written; its reply says so.
  ///
  /// If a crash would bring back an older value, it is rejected instead.
  private mutating func acceptInMemory(
    _ event: CommandEvent,
    _ fault: JournalFault,
    ending others: [KeyIndex],
    _ commands: inout CommandStateMachine,
    emitting emissions: inout Emissions,
    at now: Moment
  ) {
    let refusal = refusal(of: event.key, isUrgent: event.isUrgent, excluding: others, at: now)
    if refusal != nil {
      // A step that waited for the device's state: it was not refused when it was received.
      return reject(event.key, first: event, fault, in: &commands, emitting: &emissions, at: now)
    }
    if event.isUrgent {
      withholdIfNeeded(event, plan.sequence, ending: others, in: &commands, at: now)
    }
    guard event.isHeard(isWatched: commands.isWatched) else { return }
    emissions.append(Self.inMemory(event, fault))
  }

  static func inMemory(_ event: CommandEvent, _ fault: JournalFault) -> CommandEvent {
    guard case .accepted = event.phase else { return event }
    var event = event
    event.reason = memoryReason(fault)
    return event
  }

  /// Rejects the accepted commands of a key that wait: a crash would bring back something older.
  ///
  /// `first` is an `accepted` that was neither emitted nor queued yet.
  mutating func reject(
    _ key: KeyIndex,
    first: CommandEvent?,
    _ fault: JournalFault,
    in commands: inout CommandStateMachine,
    emitting emissions: inout Emissions,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    if keys[place].commands.newest.isUrgent { return }
    let reason = Self.overtakenReason(fault)
    var rejected: Set<UInt64> = []
    var waiting = queue.removeAll(of: key)
    if let first { waiting.append(first) }
    let lastSent = keys[place].commands.lastSent
    for var event in waiting {
      if event.phase == .accepted, event.number <= lastSent {
        // A command that was handed to the broker cannot be rejected any more.
        emissions.append(Self.inMemory(event, fault))
        continue
      }
      if event.phase == .accepted {
        rejected.insert(event.number)
        event.reject(reason)
      } else if rejected.contains(event.number) {
        continue
      }
      emissions.append(event)
    }
    // Events of other commands that came in between go their usual way.
    record(in: &commands, emitting: &emissions, at: now)
    commands.refuseWaiting(key, reason: reason, at: now)
    for var event in takeEvents(of: &commands) {
      if rejected.contains(event.number) {
        _ = ended(event, promptly: true, in: commands.registry, at: now)
      } else {
        if event.phase == .rejected { event.isNotDurable = true }
        _ = record(event, in: &commands, emitting: &emissions, at: now)
      }
    }
  }
}

extension CommandEvent {
  /// Turns an `accepted` that was not emitted into a `rejected`.
  fileprivate mutating func reject(_ reason: String) {
    phase = .rejected
    self.reason = reason
    isFinal = true
    isNotDurable = true
  }

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

/// Events that may be emitted, oldest first.
struct Emissions {
  private var events: [CommandEvent] = []
  private var next = 0

  var isEmpty: Bool { next == events.count }

  mutating func append(_ event: CommandEvent) { events.append(event) }

  /// Takes over all events of a state machine, in constant time where nothing waits here.
  mutating func takeAll(of commands: inout CommandStateMachine) {
    guard !commands.events.isEmpty else { return }
    if isEmpty {
      events.removeAll(keepingCapacity: true)
      next = 0
      swap(&events, &commands.events)
    } else {
      events += commands.events
      commands.events.removeAll(keepingCapacity: true)
    }
  }

  mutating func popFirst() -> CommandEvent? {
    guard next < events.count else { return nil }
    next += 1
    let event = events[next - 1]
    if next == events.count {
      events.removeAll(keepingCapacity: true)
      next = 0
    }
    return event
  }
}

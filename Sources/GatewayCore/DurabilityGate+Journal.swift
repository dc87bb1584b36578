// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import LastOut
import Routing

/// What the journal reports: commits, faults, and the values that an earlier process left.
extension DurabilityGate {
  /// What the values of an earlier process led to, for the log.
  struct Resumption {
    var resumed = 0
    var expired = 0
    var dropped = 0

    var count: Int { resumed + expired + dropped }
  }

  /// Handles what the journal reported, resumes stored values, and releases keys.
  ///
  /// Resumes at most ``replaysPerStep`` values; ``nextDeadline`` asks for the next step at once while
  /// more are left.
  mutating func advance(
    in commands: inout CommandStateMachine,
    emitting emissions: inout Emissions,
    log: inout [LogEntry],
    at now: Moment
  ) {
    collectEvents(at: now)
    var resumption = Resumption()
    while resumption.count < Self.replaysPerStep, let (event, reportedAt) = backlog.popFirst() {
      handle(
        event,
        reportedAt,
        &resumption,
        in: &commands,
        emitting: &emissions,
        log: &log,
        at: now
      )
    }
    if resumption.count > 0 {
      log.append(
        LogEntry(
          .info,
          "Values of the last run",
          [
            "resumed": "\(resumption.resumed)", "expired": "\(resumption.expired)",
            "dropped": "\(resumption.dropped)",
          ]
        )
      )
    }
    record(in: &commands, emitting: &emissions, at: now)
    let exposed = release(in: &commands, at: now)
    guard !exposed.isEmpty else { return }
    let names = Set(exposed).map { commands.registry[$0].key }.sorted()
    log.append(
      LogEntry(
        .warning,
        "Urgent value sent before the journal's disk was done: a crash now would send older values",
        ["keys": names.joined(separator: " ")]
      )
    )
  }

  private mutating func handle(
    _ event: JournalNews,
    _ reportedAt: Moment,
    _ resumption: inout Resumption,
    in commands: inout CommandStateMachine,
    emitting emissions: inout Emissions,
    log: inout [LogEntry],
    at now: Moment
  ) {
    switch event {
    case .durable(let sequence):
      while let event = queue.popNext(through: sequence) { emissions.append(event) }
    case .memoryOnly(let sequence, let fault, let overtaken):
      log.append(
        LogEntry(
          .error,
          "Journal degraded: what is accepted from now on does not survive a crash",
          ["path": path, "reason": fault.description]
        )
      )
      var rejected = overtaken.compactMap { try? commands.registry.index(of: $0) }
      rejected += barred.filter { !rejected.contains($0) }
      for key in rejected {
        reject(key, first: nil, fault, in: &commands, emitting: &emissions, at: now)
      }
      while let event = queue.popNext(through: sequence) {
        emissions.append(Self.inMemory(event, fault))
      }
    case .replay(let entry, let remaining):
      let expiresAt = reportedAt.advanced(by: remaining)
      let number = plan.number(of: entry.key)
      // A newer value, or a command that ends it, may have been accepted since the plan decided.
      guard plan.resume(number, entry.sequence) else { return }
      guard now < expiresAt else {
        plan.ended(number, entry.sequence, at: now, promptly: false)
        resumption.expired += 1
        return expire(entry, because: .timeToLive, in: &commands, log: &log, at: now)
      }
      if let dropped = resume(entry, expiresAt: expiresAt, in: &commands, at: now) {
        resumption.dropped += 1
        log.append(dropped)
      } else {
        resumption.resumed += 1
      }
    case .expired(let entry, let reason):
      resumption.expired += 1
      expire(entry, because: reason, in: &commands, log: &log, at: now)
    case .recovered: log.append(LogEntry(.info, "Journal works again", ["path": path]))
    case .setAside(let found):
      log.append(
        LogEntry(
          .error,
          "Journal damaged: set aside, and a new one begun; what it held is not sent",
          ["path": path, "kept_as": found.path ?? "none", "reason": found.reason]
        )
      )
    }
  }

  // MARK: - Values of an earlier process

  /// Resumes a value as a command.
  ///
  /// - Returns: Why it was dropped: there is no such key any more, or it does not accept the value.
  private mutating func resume(
    _ entry: JournalEntry,
    expiresAt: Moment,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) -> LogEntry? {
    guard let stored = entry.content.decoded as? DurableValue else {
      return drop(entry, because: "it cannot be read", at: now)
    }
    do throws(ValidationError) {
      let registry = commands.registry
      let key = try registry.index(of: entry.key)
      let name = registry[key].key
      guard !commands.isAction(key), name == entry.key else {
        throw .unsupported("\(name) has taken its place and is not journalled under that name")
      }
      let property = registry[key].property
      let value = try property.value(from: stored.value)
      let isUrgent = property.urgent.contains(value)
      let others = commands.keysEnded(by: key, isUrgent: isUrgent)
      let number = commands.resume(
        value,
        of: key,
        ending: others.filter {
          keys[Int($0.rawValue)].commands.newestSequence < entry.sequence
        },
        at: now,
        expiresAt: expiresAt,
        origin: stored.origin,
        options: stored.options.isEmpty ? nil : stored.options
      )
      resumed.append(
        ResumedValue(
          key: key,
          value: value,
          number: number,
          id: stored.id,
          expiresAt: expiresAt
        )
      )
      _ = self.number(of: key, in: registry)
      keys[Int(key.rawValue)].commands.push(
        DurableCommand(number: number, sequence: entry.sequence, isUrgent: isUrgent)
      )
      withholdIfNeeded(
        key,
        entry.sequence,
        ending: others,
        through: entry.sequence,
        urgentNumber: isUrgent ? number : nil,
        in: &commands,
        at: now
      )
      return nil
    } catch {
      return drop(entry, because: error.description, at: now)
    }
  }

  private mutating func drop(
    _ entry: JournalEntry,
    because reason: String,
    at now: Moment
  ) -> LogEntry {
    plan.ended(plan.number(of: entry.key), entry.sequence, at: now, promptly: true)
    return LogEntry(
      .warning,
      "Journalled value dropped",
      ["key": entry.key, "value": Self.excerpt(entry), "reason": reason]
    )
  }

  /// Reports the end of a value whose time passed while no gateway ran.
  private func expire(
    _ entry: JournalEntry,
    because reason: ExpiryReason,
    in commands: inout CommandStateMachine,
    log: inout [LogEntry],
    at now: Moment
  ) {
    guard let stored = entry.content.decoded as? DurableValue,
      let key = try? commands.registry.index(of: entry.key)
    else {
      log.append(
        LogEntry(
          .warning,
          "Journalled value expired",
          ["key": entry.key, "value": Self.excerpt(entry), "reason": reason.description]
        )
      )
      return
    }
    commands.expireUnresumed(
      try? commands.registry[key].property.value(from: stored.value),
      of: key,
      at: now,
      origin: stored.origin,
      reason: reason.description
    )
  }

  private static func excerpt(_ entry: JournalEntry) -> String {
    (entry.content.decoded as? DurableValue).map { Excerpt.of($0.value) } ?? "?"
  }
}

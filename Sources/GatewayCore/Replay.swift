// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import LastOut

/// Decides what becomes of the values that an earlier process left: resumed as commands, expired, or
/// dropped.
struct Replay {
  /// How many values one step handles at most.
  static let valuesPerStep = 256

  /// What this step's values led to.
  private var counts = (resumed: 0, expired: 0, dropped: 0)
  /// Whether the clocks were asked for and not read yet.
  private(set) var awaitsClock = false

  private var count: Int { counts.resumed + counts.expired + counts.dropped }

  /// Whether this step may handle another value.
  var hasRoom: Bool { count < Self.valuesPerStep }

  /// Ends a step; the result is its line for the log, if it handled any value.
  mutating func endStep() -> LogEntry? {
    guard count > 0 else { return nil }
    defer { counts = (0, 0, 0) }
    return LogEntry(
      .info,
      "Values of the previous run",
      [
        "resumed": "\(counts.resumed)", "expired": "\(counts.expired)",
        "dropped": "\(counts.dropped)",
      ]
    )
  }

  // MARK: - The clocks

  /// Whether the clocks must be read now; asks once.
  mutating func needsClock(_ plan: borrowing JournalPlan, at now: Moment) -> Bool {
    guard !awaitsClock, let due = plan.replayDeadline, due <= now else { return false }
    awaitsClock = true
    return true
  }

  mutating func clockRead() { awaitsClock = false }

  // MARK: - Values

  /// Resumes a value of which `remaining` was left of its time to live at `reportedAt`.
  mutating func resume(
    _ entry: JournalEntry,
    remaining: Duration,
    reportedAt: Moment,
    _ rows: inout JournalRows,
    _ withheld: inout WithheldKeys,
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    let expiresAt = reportedAt.advanced(by: remaining)
    let number = rows.plan.number(of: entry.key)
    // A newer value, or a command that ends it, may have been accepted since the plan decided.
    guard rows.plan.resume(number, entry.sequence) else { return }
    guard now < expiresAt else {
      rows.plan.ended(number, entry.sequence, at: now, promptly: false)
      return expire(entry, because: .timeToLive, in: &commands, &outbox, at: now)
    }
    do throws(ValidationError) {
      try resume(entry, expiresAt: expiresAt, &rows, &withheld, in: &commands, &outbox, at: now)
      counts.resumed += 1
    } catch {
      rows.plan.ended(number, entry.sequence, at: now, promptly: true)
      counts.dropped += 1
      outbox.log(
        LogEntry(
          .warning,
          "Journalled value dropped",
          ["key": entry.key, "value": Self.excerpt(entry), "reason": error.description]
        )
      )
    }
  }

  /// Resumes a value as a command.
  ///
  /// - Throws: When there is no such key any more, or it does not accept the value.
  private mutating func resume(
    _ entry: JournalEntry,
    expiresAt: Moment,
    _ rows: inout JournalRows,
    _ withheld: inout WithheldKeys,
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) throws(ValidationError) {
    guard let stored = entry.content.decoded as? DurableValue else {
      throw .unsupported("it cannot be read")
    }
    let registry = commands.registry
    let key = try registry.index(of: entry.key)
    let name = registry[key].key
    guard !commands.dispatcher.isAction(key), name == entry.key else {
      throw .unsupported("\(name) has taken its place and is not journalled under that name")
    }
    let property = registry[key].property
    let value = try property.value(from: stored.value)
    let isUrgent = property.urgent.contains(value)
    let others = commands.keysEnded(by: key, isUrgent: isUrgent)
    var older: [KeyIndex] = []
    for other in others where rows.newestSequence(of: other) < entry.sequence {
      // Momentary commands are never stored: they are newer than anything that is.
      if !commands.dispatcher.isAction(other) { older.append(other) }
    }
    let number = commands.resume(
      value,
      of: key,
      ending: older,
      at: now,
      expiresAt: expiresAt,
      origin: stored.origin,
      options: stored.options.isEmpty ? nil : stored.options
    )
    outbox.append(
      .resumed(
        ResumedValue(key: key, value: value, number: number, id: stored.id, expiresAt: expiresAt)
      )
    )
    rows.resume(key, sequence: entry.sequence, as: number, isUrgent: isUrgent, in: registry)
    let command = WithheldKeys.Command(
      key: key,
      sequence: entry.sequence,
      others: others,
      ended: entry.sequence,
      urgentNumber: isUrgent ? number : nil
    )
    withheld.add(command, &rows, in: &commands, at: now)
  }

  /// Reports the end of a value whose time passed while no gateway ran.
  mutating func expire(
    _ entry: JournalEntry,
    because reason: ExpiryReason,
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    counts.expired += 1
    guard let stored = entry.content.decoded as? DurableValue,
      let key = try? commands.registry.index(of: entry.key)
    else {
      outbox.log(
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

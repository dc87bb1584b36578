// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import LastOut
import Values

/// Decides what becomes of the values that an earlier process left: resumed as commands, expired,
/// or dropped.
struct Replay {
  /// How many values one step handles at most.
  static let valuesPerStep = 256

  /// What this step's values led to.
  private var counts = (resumed: 0, expired: 0, dropped: 0)
  /// Whether the clocks were asked for and not read yet.
  private(set) var awaitsClock = false
  /// The devices that may still appear.
  private var awaited: AwaitedDevices
  /// Values of such devices; their rows stay in the journal.
  private var kept: [(entry: JournalEntry, expiresAt: Moment)] = []
  /// When the first kept value expires.
  private(set) var keptExpiry: Moment?

  /// Whether a value that is resumed settles again before it is sent: its hand may still be
  /// turning.
  private let settles: Bool
  /// When the newest value that was resumed had been accepted, and the keys resumed with that
  /// moment.
  private var latest: (stamps: JournalStamps, keys: [KeyIndex])?

  init(awaiting awaited: AwaitedDevices = AwaitedDevices(), settles: Bool = false) {
    self.awaited = awaited
    self.settles = settles
  }

  private var count: Int { counts.resumed + counts.expired + counts.dropped }

  /// Whether this step may handle another value.
  var hasRoom: Bool { count < Self.valuesPerStep }

  /// Ends a step; the result is its line for the log, if it handled any value.
  mutating func endStep() -> LogEntry? {
    guard count > 0 else { return nil }
    defer { counts = (0, 0, 0) }
    return LogEntry(
      .info,
      settles ? "Values of the owner before" : "Values of the previous run",
      [
        "resumed": "\(counts.resumed)", "expired": "\(counts.expired)",
        "dropped": "\(counts.dropped)",
      ]
    )
  }

  // MARK: - Devices that may still appear

  /// Keeps a value whose device may appear with its first message; `false` for any other.
  mutating func keep(
    _ entry: JournalEntry,
    until expiresAt: Moment,
    _ registry: Registry,
    at now: Moment
  ) -> Bool {
    guard now < expiresAt, registry.index(ofKey: entry.key.utf8.span) == nil,
      awaited.awaits(entry.key)
    else { return false }
    kept.append((entry, expiresAt))
    keptExpiry = Moment.earlier(keptExpiry, expiresAt)
    return true
  }

  /// The kept values that have expired.
  mutating func popExpired(at now: Moment) -> [(entry: JournalEntry, expiresAt: Moment)] {
    guard let keptExpiry, keptExpiry <= now else { return [] }
    return removeKept { $0.expiresAt <= now }
  }

  /// Continues with other devices.
  ///
  /// - Returns: The kept values whose device has appeared, or cannot appear any more.
  mutating func replaceDevices(
    _ registry: Registry,
    awaiting awaited: AwaitedDevices
  ) -> [(entry: JournalEntry, expiresAt: Moment)] {
    self.awaited = awaited
    return removeKept { value in
      registry.index(ofKey: value.entry.key.utf8.span) != nil || !awaited.awaits(value.entry.key)
    }
  }

  private mutating func removeKept(
    where isRemoved: ((entry: JournalEntry, expiresAt: Moment)) -> Bool
  ) -> [(entry: JournalEntry, expiresAt: Moment)] {
    let removed = kept.filter(isRemoved)
    kept.removeAll(where: isRemoved)
    keptExpiry = kept.lazy.map(\.expiresAt).min()
    return removed
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
    if keep(entry, until: expiresAt, commands.registry, at: now) { return }
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
    guard !commands.isAction(key), name == entry.key else {
      throw .unsupported("\(name) has taken its place and is not journalled under that name")
    }
    let property = registry.definition(of: key).property
    let value = try property.value(from: stored.value)
    let isUrgent = property.urgent.contains(value)
    let others = commands.rivals(of: key, value, isUrgent: isUrgent, isAccepted: false)
    var older: [KeyIndex] = []
    let riders = ridersOfChange(entry, of: key, among: others, in: commands)
    for other in others where rows.newestSequence(of: other.key) < entry.sequence {
      if riders.contains(other.key) { continue }
      // Momentary commands are never stored: they are newer than anything that is.
      if !commands.isAction(other.key) { older.append(other.key) }
    }
    let number = commands.resume(
      value,
      of: key,
      ending: older,
      with: riders,
      settles: settles,
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
    let durable = DurableCommand(
      number: number,
      sequence: entry.sequence,
      isUrgent: isUrgent,
      value: value,
      acceptedAt: now,
      expiresAt: expiresAt,
      origin: stored.origin,
      options: stored.options.isEmpty ? nil : stored.options
    )
    rows.resume(key, durable, in: registry)
    let command = WithheldKeys.Command(
      key: key,
      sequence: entry.sequence,
      others: others.filter { !riders.contains($0.key) },
      ended: entry.sequence,
      urgentNumber: isUrgent ? number : nil
    )
    withheld.add(command, &rows, in: &commands, at: now)
  }

  /// The keys whose values are of the same change as `entry`, which they contradict: nothing else
  /// that was accepted before a value and contradicts it is stored beside it.
  private mutating func ridersOfChange(
    _ entry: JournalEntry,
    of key: KeyIndex,
    among rivals: [Rival],
    in commands: borrowing CommandStateMachine
  ) -> [KeyIndex] {
    guard case .stored(let stamps) = entry.origin else { return [] }
    let keys = latest?.stamps == stamps ? latest?.keys ?? [] : []
    latest = (stamps, keys + [key])
    return commands.riders(of: key, among: rivals.map(\.key).filter(keys.contains))
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
    commands.log.expireUnresumed(
      try? commands.registry.definition(of: key).property.value(from: stored.value),
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

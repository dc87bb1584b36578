// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import Durability
package import LastOut
import Routing
import Values

/// Decides which event waits for which commit.
///
/// `accepted` is emitted once its value is durable; later events of the same key queue behind it.
/// ``JournalRows`` knows what the journal has of each key, ``WithheldKeys`` decides which key must
/// not be sent yet, and ``Replay`` which values of an earlier process become commands again.
package struct DurabilityGate {
  /// The journal's file, as the log names it.
  private let path: String
  /// What keeps the values, in words.
  private let store: String
  /// Names the commands of values that are restored.
  let identifiers: CommandIdentifiers
  /// How many changes may wait for the disk.
  private let limit: Int
  /// How many events leave their memory to the next ones.
  static let keptCapacity = 1024
  var rows: JournalRows
  var withheldKeys: WithheldKeys
  /// The events that are being recorded, and the place of the next one.
  var batch: [CommandEvent] = []
  var next = 0
  /// The places of the newest accepted value of each key among them; empty until one is asked for.
  var accepted: [KeyIndex: Int] = [:]
  /// Keys whose newest values cannot be kept, and of which a crash would bring back something
  /// older: they are rejected once the events are recorded.
  var overtaken: [KeyIndex] = []
  private var replay: Replay
  package internal(set) var queue = DurabilityQueue()
  /// What the plan reported, and when; a later step handles what one step cannot.
  private var backlog = Deque<(event: JournalEvent, at: Moment)>()
  /// The fault that ``Effect/storeHealth(_:)`` reported last.
  private var reportedFault: JournalFault?
  /// Whether a file that opened late was read since the last step.
  private var hasReadLate = false
  /// Whether an attempt to write has failed since the last step: it may have left rows behind.
  private var hasFailed = false
  /// Whether the file is being closed.
  private var isClosing = false
  /// Whether the file was closed.
  private(set) var isClosed = false

  /// Values of an earlier process for a device in `awaited` wait until it appears.
  init(
    plan: JournalPlan,
    path: String,
    registry: Registry,
    awaiting awaited: AwaitedDevices = AwaitedDevices(),
    settlesResumed: Bool = false,
    identifiers: CommandIdentifiers,
    limit: Int
  ) {
    self.identifiers = identifiers
    replay = Replay(awaiting: awaited, settles: settlesResumed)
    self.path = path
    store = settlesResumed ? "the cluster's engine" : "the journal"
    self.limit = limit
    rows = JournalRows(
      plan: plan,
      keys: registry.properties.count,
      keepsReplaced: settlesResumed
    )
    withheldKeys = WithheldKeys(keys: registry.properties.count)
    rows.learnNumbers(in: registry)
    rows.learnUrgent(in: registry, at: .zero)
  }

  /// Makes room for more keys.
  mutating func extend(toKeys count: Int) {
    rows.extend(toKeys: count)
    withheldKeys.extend(toKeys: count)
  }

  /// Continues with other devices: values that waited for one are resumed, or dropped.
  mutating func replaceDevices(_ registry: Registry, awaiting awaited: AwaitedDevices) {
    append(replay.replaceDevices(registry, awaiting: awaited))
  }

  /// Decides again about values that waited for their device.
  private mutating func append(_ values: [(entry: JournalEntry, expiresAt: Moment)]) {
    for value in values {
      backlog.append((.replay(value.entry, remaining: .zero), value.expiresAt))
    }
  }

  package var plan: JournalPlan { rows.plan }

  /// Why nothing can be written; `nil` while the journal works.
  package var fault: JournalFault? { rows.plan.fault }

  /// The keys that must not be sent now; while nothing can be written, there is no use in waiting
  /// for the disk.
  package var withheld: [KeyIndex] {
    fault == nil ? withheldKeys.behind : withheldKeys.behind.filter { !withheldKeys.isOpen($0) }
  }

  /// When the gate has something to do next; `nil` when it waits for the journal's thread only.
  package var nextDeadline: Moment? {
    guard !isClosing else { return nil }
    let hasEvents = !backlog.isEmpty || !rows.plan.events.isEmpty
    var next = hasEvents ? Moment.zero : rows.plan.nextDeadline
    if !replay.awaitsClock, let due = rows.plan.replayDeadline { next = min(next ?? due, due) }
    if let end = replay.keptExpiry { next = min(next ?? end, end) }
    if let end = withheldKeys.patienceEnds { next = min(next ?? end, end) }
    return next
  }

  // MARK: - Refusing

  /// Why a change must be refused because it could not be kept; `nil` when it may be accepted.
  ///
  /// An urgent value is never refused: a stop that cannot be written stops all the same.
  func refusal(
    of key: KeyIndex,
    isUrgent: Bool,
    excluding others: [Rival],
    at now: Moment
  ) -> ValidationError? {
    if isUrgent { return nil }
    if queue.count >= limit {
      return .notDurable("\(queue.count) changes wait for \(store), which is slow")
    }
    guard let fault else { return nil }
    let isOvertaking = ([Rival(key: key)] + others).contains {
      rows.holdsOlder($0, than: .max, at: now)
    }
    return isOvertaking ? .notDurable(overtakenReason(fault)) : nil
  }

  /// Whether so much waits for the disk that clients must slow down.
  ///
  /// A client that sends all it can reaches this between two commits.
  package var isBehind: Bool { queue.count >= max(1, limit / 16 * 15) }

  func overtakenReason(_ fault: JournalFault) -> String {
    "\(store) cannot be written (\(fault)), and after a crash would send an older value again"
  }

  func memoryReason(_ fault: JournalFault) -> String {
    "held in memory only, \(store) cannot be written: \(fault)"
  }

  // MARK: - The journal's thread

  /// The next work for the journal's thread, if it is due.
  mutating func nextWork(_ identifiers: CommandIdentifiers, at now: Moment) -> JournalWork? {
    isClosing ? nil : rows.nextWork(identifiers, at: now)
  }

  mutating func finished(_ result: JournalResult, in registry: Registry, at now: Moment) {
    rows.plan.completed(result, at: now)
    rows.learnNumbers(in: registry)
    withheldKeys.diskChanged()
    switch result {
    case .done: break
    case .failed: hasFailed = true
    case .reopened:
      hasReadLate = true
      rows.learnUrgent(in: registry, at: now)
    }
  }

  /// Handles what happened since the last call: events of commands, then what the journal reported;
  /// resumes stored values, and releases keys.
  ///
  /// Resumes at most ``Replay/valuesPerStep`` values; ``nextDeadline`` asks for the next step at
  /// once while more are left.
  mutating func advance(
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    record(in: &commands, &outbox, at: now)
    if hasReadLate { withholdWaiting(in: &commands, at: now) }
    collectEvents(at: now)
    if hasFailed { rejectBarred(in: &commands, &outbox, at: now) }
    append(replay.popExpired(at: now))
    while replay.hasRoom, let (event, reportedAt) = backlog.popFirst() {
      handle(event, reportedAt, in: &commands, &outbox, at: now)
    }
    outbox.log(replay.endStep())
    record(in: &commands, &outbox, at: now)
    let exposed = withheldKeys.release(rows, in: &commands, at: now)
    if !exposed.isEmpty {
      let names = Set(exposed).map { commands.registry[$0].key }.sorted()
      outbox.log(
        LogEntry(
          .warning,
          "Urgent value sent before the journal's disk was done: a crash now would send older values",
          ["keys": names.joined(separator: " ")]
        )
      )
    }
    if fault != reportedFault {
      reportedFault = fault
      outbox.append(.storeHealth(fault))
    }
    if replay.needsClock(rows.plan, at: now) { outbox.append(.readClock) }
  }

  /// Withholds the commands that wait if a file that opened late has something older.
  private mutating func withholdWaiting(in commands: inout CommandStateMachine, at now: Moment) {
    hasReadLate = false
    for (key, waiting) in rows.waitingCommands {
      let command = WithheldKeys.Command(
        key: key,
        sequence: waiting.sequence,
        others: commands.rivals(
          of: key,
          waiting.value,
          isUrgent: waiting.isUrgent,
          isAccepted: true
        ),
        ended: waiting.sequence,
        urgentNumber: waiting.isUrgent ? waiting.number : nil
      )
      withheldKeys.add(command, &rows, in: &commands, at: now)
    }
    flush(at: now)
  }

  /// Rejects commands that would be followed by a row which an attempt to write has left.
  private mutating func rejectBarred(
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    hasFailed = false
    // A fault that is new is told first.
    guard let fault, fault == reportedFault else { return }
    for key in withheldKeys.barred(rows, at: now) {
      reject(key, fault, in: &commands, &outbox, at: now)
    }
  }

  /// Moves what the plan reported to the backlog.
  private mutating func collectEvents(at now: Moment) {
    for event in rows.plan.dequeueEvents() { backlog.append((event, now)) }
  }

  private mutating func handle(
    _ event: JournalEvent,
    _ reportedAt: Moment,
    in commands: inout CommandStateMachine,
    _ outbox: inout Outbox,
    at now: Moment
  ) {
    switch event {
    case .durable(let sequence):
      while let event = queue.popNext(through: sequence) { outbox.emit(event) }
    case .memoryOnly(let sequence, let fault, let overtaken):
      outbox.log(
        LogEntry(
          .error,
          "Journal degraded: newly accepted values do not survive a crash",
          ["path": path, "reason": fault.description]
        )
      )
      var rejected = overtaken.compactMap { try? commands.registry.index(of: $0) }
        .filter { rows.holdsOlder($0, than: rows.newestSequence(of: $0), at: now) }
      rejected += withheldKeys.barred(rows, at: now).filter { !rejected.contains($0) }
      for key in rejected {
        reject(key, fault, in: &commands, &outbox, at: now)
      }
      record(in: &commands, &outbox, at: now)
      while let event = queue.popNext(through: sequence) {
        outbox.emit(inMemory(event, fault))
      }
      rows.told(through: sequence)
    case .replay(let entry, let remaining):
      replay.resume(
        entry,
        remaining: remaining,
        reportedAt: reportedAt,
        &rows,
        &withheldKeys,
        in: &commands,
        &outbox,
        at: now
      )
    case .expired(let entry, let reason):
      replay.expire(entry, because: reason, in: &commands, &outbox, at: now)
    case .recovered: outbox.log(LogEntry(.info, "Journal recovered", ["path": path]))
    case .setAside(let found):
      outbox.log(
        LogEntry(
          .error,
          "Journal damaged: file set aside, new journal started; its values are not sent",
          ["path": path, "kept_as": found.path ?? "none", "reason": found.reason]
        )
      )
    }
  }

  /// Judges the age of stored values; asks again in a second where it cannot be told yet.
  mutating func judge(_ clock: JournalClock) {
    replay.clockRead()
    rows.plan.decideReplay(clock)
    collectEvents(at: clock.moment)
  }

  // MARK: - A store that is shared

  /// Takes over values that another process accepted.
  mutating func takeOver(_ entries: [JournalEntry], in registry: Registry, at now: Moment) {
    rows.plan.takeOver(entries, at: now)
    rows.learnNumbers(in: registry)
    rows.learnUrgent(in: registry, at: now)
  }

  /// Forgets a key: another process has it.
  ///
  /// - Returns: Its events that waited for a commit.
  mutating func forget(_ key: KeyIndex, in commands: inout CommandStateMachine) -> [CommandEvent] {
    rows.forget(key)
    withheldKeys.forget(key, in: &commands)
    return queue.removeAll(of: key)
  }

  // MARK: - Closing

  /// Writes what waits without delay, before the file is closed.
  mutating func flush(at now: Moment) { rows.plan.flush(at: now) }

  /// Begins to close the file once nothing is left to write, or nothing can be written.
  ///
  /// - Returns: Whether to close the file now; `true` once.
  mutating func beginClosing() -> Bool {
    guard !isClosing, rows.plan.isIdle || rows.plan.isStuck else { return false }
    isClosing = true
    return true
  }

  mutating func closed() { isClosed = true }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import Durability
package import LastOut
import Routing

/// Decides which event waits for which commit, and which key must not be sent yet.
///
/// `accepted` is emitted once its value is durable; later events of the same key queue behind it. A
/// key is withheld while a crash would send an older value after its newest one, or a value that its
/// newest command ends (`ends:`, `excludes:`). An urgent command waits for that at most
/// ``patience``.
package struct DurabilityGate {
  /// A row on disk of another key, which a command ends and which must be gone before it is sent.
  struct Barrier {
    let key: KeyIndex
    /// Rows up to this sequence number.
    let sequence: UInt64
  }

  /// What the gate knows about one key.
  struct Key {
    /// The key's number in the journal, once it was asked for.
    var number: JournalKey?
    var commands = DurableCommands()
    /// In ``behind``.
    var isBehind = false
    /// It may be sent although it is behind, because nothing can be written.
    var isOpen = false
    /// The newest urgent command that waits to be sent, also a momentary action, which is not
    /// journalled; 0 for none.
    var urgentNumber: UInt64 = 0
    /// When an urgent command stops waiting for the disk; `nil` when none waits, or has stopped.
    var patienceEnds: Moment?
    var barriers: [Barrier] = []
  }

  /// How long an urgent command waits for the disk at most.
  package static let patience = Duration.milliseconds(250)
  /// Values of an earlier process that one step resumes at most.
  static let replaysPerStep = 256

  package var plan: JournalPlan
  /// The journal's file, as the log names it.
  let path: String
  var keys: [Key]
  /// The keys by their numbers in the journal.
  private var journalKeys: [KeyIndex] = []
  package var queue = DurabilityQueue()
  /// Keys of which a crash would send something that their newest command must not be followed by.
  private var behind: [KeyIndex] = []
  /// Keys that must not be sent now: those, unless there is no use in waiting.
  package var withheld: [KeyIndex] { plan.fault == nil ? behind : [] }
  /// Something happened that may release one of them.
  var mayRelease = false
  /// When the first row that withholds one of them expires.
  private var nextExpiry: Moment?
  /// When the first urgent command among them stops waiting for the disk.
  private var patienceEnds: Moment?
  /// What the plan reported, and when; a later step handles what one step cannot.
  var backlog = Deque<(event: JournalNews, at: Moment)>()
  /// Values that were resumed and not reported yet.
  var resumed: [ResumedValue] = []
  /// Whether the clocks were asked for and not read yet.
  private var awaitsClock = false
  /// Whether the file is being closed, or is.
  var isClosing = false
  var isClosed = false
  /// How many changes may wait for the disk.
  private let limit: Int
  /// See ``GatewayCore/transcript``.
  var transcript: [CommandEvent]?

  package init(plan: JournalPlan, path: String, keys: Int, limit: Int) {
    self.plan = plan
    self.path = path
    self.limit = limit
    self.keys = Array(repeating: Key(), count: keys)
  }

  /// Makes room for more keys.
  mutating func extend(keys count: Int) {
    for _ in keys.count..<count { keys.append(Key()) }
  }

  /// Why nothing can be written; `nil` while the journal works.
  package var fault: JournalFault? { plan.fault }

  /// When the gate has something to do next; `nil` when it waits for the journal's thread only.
  package var nextDeadline: Moment? {
    guard !isClosing else { return nil }
    var next = backlog.isEmpty && plan.events.isEmpty ? plan.nextDeadline : Moment.zero
    if !awaitsClock, let due = plan.replayDeadline { next = min(next ?? due, due) }
    if let patienceEnds { next = min(next ?? patienceEnds, patienceEnds) }
    return next
  }

  /// The key's number in the journal.
  mutating func number(of key: KeyIndex, in registry: Registry) -> JournalKey {
    let place = Int(key.rawValue)
    if let known = keys[place].number { return known }
    learnNumbers(in: registry)
    let number = plan.number(of: registry.properties[place].key)
    keys[place].number = number
    if number.rawValue == journalKeys.count { journalKeys.append(key) }
    return number
  }

  /// Learns the numbers of keys that the journal's file names.
  mutating func learnNumbers(in registry: Registry) {
    for name in plan.names.dropFirst(journalKeys.count) {
      // A name that no key has any more keeps its place; nothing refers to it.
      let key = (try? registry.index(of: name)) ?? KeyIndex(-1)
      let number = plan.number(of: name)
      journalKeys.append(key)
      if key.rawValue >= 0, registry[key].key == name { keys[Int(key.rawValue)].number = number }
    }
  }

  // MARK: - Refusing

  /// Why a change must be refused because it could not be kept; `nil` when it may be accepted.
  ///
  /// An urgent value is never refused: a stop that cannot be written stops all the same.
  func refusal(
    of key: KeyIndex,
    isUrgent: Bool,
    excluding others: [KeyIndex],
    at now: Moment
  ) -> ValidationError? {
    if isUrgent { return nil }
    if queue.count >= limit {
      return .notDurable("\(queue.count) changes wait for the journal's disk, which is slow")
    }
    guard let fault else { return nil }
    let isOvertaking =
      hasLiveRow(key, at: now) || others.contains { hasLiveRow($0, at: now) }
    return isOvertaking ? .notDurable(Self.overtakenReason(fault)) : nil
  }

  /// Whether so much waits for the disk that clients must slow down.
  ///
  /// A client that sends all it can reaches this between two commits.
  package var isBehind: Bool { queue.count >= max(1, limit / 16 * 15) }

  static func overtakenReason(_ fault: JournalFault) -> String {
    "the journal cannot be written (\(fault)), and after a crash would send an older value again"
  }

  static func memoryReason(_ fault: JournalFault) -> String {
    "held in memory only, the journal cannot be written: \(fault)"
  }

  private func hasLiveRow(_ key: KeyIndex, at now: Moment) -> Bool {
    guard let number = keys[Int(key.rawValue)].number else { return false }
    return plan.holdsOlder(number, than: .max, at: now)
  }

  // MARK: - Withholding

  /// Withholds a key if a crash would send something that its newest command must not be followed
  /// by.
  ///
  /// `sequence` is the number of its value in the journal, `nil` for an action, which has none. The
  /// command ends the rows of `others` up to `ended`. `urgentNumber` is its number in the state
  /// machine if it is urgent, else `nil`.
  mutating func withholdIfNeeded(
    _ key: KeyIndex,
    _ sequence: UInt64?,
    ending others: [KeyIndex],
    through ended: UInt64,
    urgentNumber: UInt64?,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    for other in others {
      guard let number = keys[Int(other.rawValue)].number else { continue }
      plan.discardUnresumed(number, through: ended, at: now)
      let barrier = Barrier(key: other, sequence: ended)
      guard stands(barrier, at: now) else { continue }
      keys[place].barriers.removeAll { $0.key == other }
      keys[place].barriers.append(barrier)
    }
    guard !mayLeave(key, newest: sequence, at: now) else { return }
    if let urgentNumber { wait(key, for: urgentNumber, at: now) }
    if plan.fault != nil { mayRelease = true }  // There is nothing to wait for.
    recordExpiry(of: key)
    if !keys[place].isBehind { behind.append(key) }
    keys[place].isBehind = true
    withhold(key, in: &commands, at: now)
  }

  /// Lets nothing of a key leave, except an urgent command that does not wait for the disk: it has
  /// done so for long enough, or was there before the newest command, which does.
  private func withhold(
    _ key: KeyIndex,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    let isWaiting = keys[Int(key.rawValue)].patienceEnds != nil
    commands.withhold(key, exceptUrgent: !isWaiting, at: now)
  }

  /// An urgent command waits for the disk, from now on or since the one that it replaces.
  private mutating func wait(_ key: KeyIndex, for number: UInt64, at now: Moment) {
    let place = Int(key.rawValue)
    if keys[place].urgentNumber == 0 {
      let end = now.advanced(by: Self.patience)
      keys[place].patienceEnds = end
      patienceEnds = min(patienceEnds ?? end, end)
    }
    keys[place].urgentNumber = number
  }

  /// An urgent command waits no longer: it was sent, or has ended.
  mutating func urgentFinished(
    _ key: KeyIndex,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    keys[place].urgentNumber = 0
    keys[place].patienceEnds = nil
    mayRelease = true
    if keys[place].isBehind, !keys[place].isOpen { withhold(key, in: &commands, at: now) }
  }

  private func mayLeave(_ key: KeyIndex, newest sequence: UInt64?, at now: Moment) -> Bool {
    let place = Int(key.rawValue)
    if let sequence, let number = keys[place].number,
      plan.holdsOlder(number, than: sequence, at: now)
    {
      return false
    }
    return keys[place].barriers.allSatisfy { !stands($0, at: now) }
  }

  /// Whether a crash would send the row that a barrier names.
  private func stands(_ barrier: Barrier, at now: Moment) -> Bool {
    guard let number = keys[Int(barrier.key.rawValue)].number else { return false }
    return plan.holdsOlder(number, than: barrier.sequence + 1, at: now)
  }

  private mutating func recordExpiry(of key: KeyIndex) {
    let rows = [key] + keys[Int(key.rawValue)].barriers.map(\.key)
    for row in rows {
      guard let number = keys[Int(row.rawValue)].number,
        let expiry = plan.rowExpiry(of: number)
      else { continue }
      nextExpiry = min(nextExpiry ?? expiry, expiry)
    }
  }

  /// Releases the keys that may be sent.
  ///
  /// That is so when a crash would send nothing after their newest command that it must not, and when
  /// nothing can be written anyway. An urgent command whose ``patience`` has ended may be sent alone.
  /// Looks at the keys only after something happened that can release one.
  ///
  /// - Returns: Keys whose rows an urgent command could not wait for.
  mutating func release(in commands: inout CommandStateMachine, at now: Moment) -> [KeyIndex] {
    guard !behind.isEmpty else { return [] }
    let isImpatient = patienceEnds.map { $0 <= now } ?? false
    let isExpired = nextExpiry.map { $0 <= now } ?? false
    guard isImpatient || isExpired || mayRelease else { return [] }
    mayRelease = false
    nextExpiry = nil
    patienceEnds = nil
    var exposed: [KeyIndex] = []
    var kept: [KeyIndex] = []
    for key in behind {
      guard isStillBehind(key, at: now) else {
        leaveBehind(key, in: &commands, at: now)
        continue
      }
      kept.append(key)
      recordExpiry(of: key)
      exposed += stopWaiting(key, in: &commands, at: now)
      if let end = keys[Int(key.rawValue)].patienceEnds {
        patienceEnds = min(patienceEnds ?? end, end)
      }
    }
    behind = kept
    return exposed
  }

  private func isStillBehind(_ key: KeyIndex, at now: Moment) -> Bool {
    let place = Int(key.rawValue)
    let newest = keys[place].commands.waiting
    if plan.fault != nil, newest == nil, keys[place].urgentNumber == 0 { return false }
    return !mayLeave(key, newest: newest, at: now)
  }

  private mutating func leaveBehind(
    _ key: KeyIndex,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    let place = Int(key.rawValue)
    keys[place].isBehind = false
    keys[place].isOpen = false
    keys[place].barriers = []
    keys[place].urgentNumber = 0
    keys[place].patienceEnds = nil
    commands.release(key, at: now)
  }

  /// Lets a key that is still behind be sent while nothing can be written, and an urgent command of
  /// it once its patience has ended.
  ///
  /// - Returns: The rows that the urgent command did not wait for.
  private mutating func stopWaiting(
    _ key: KeyIndex,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) -> [KeyIndex] {
    let place = Int(key.rawValue)
    let hasFault = plan.fault != nil
    if keys[place].isOpen, !hasFault {
      // The disk works again: it is worth waiting for.
      keys[place].isOpen = false
      if keys[place].urgentNumber != 0 {
        keys[place].patienceEnds = now.advanced(by: Self.patience)
      }
      withhold(key, in: &commands, at: now)
    }
    let isImpatient = keys[place].patienceEnds.map { $0 <= now || hasFault } ?? false
    if isImpatient { keys[place].patienceEnds = nil }
    if hasFault {
      keys[place].isOpen = true
      commands.release(key, at: now)
    } else if isImpatient {
      withhold(key, in: &commands, at: now)
    }
    return isImpatient ? rowsAhead(of: key, at: now) : []
  }

  /// The keys whose rows a crash would send after the newest command of `key`.
  private func rowsAhead(of key: KeyIndex, at now: Moment) -> [KeyIndex] {
    let place = Int(key.rawValue)
    var found = keys[place].barriers.filter { stands($0, at: now) }.map(\.key)
    if let newest = keys[place].commands.waiting, let number = keys[place].number,
      plan.holdsOlder(number, than: newest, at: now)
    {
      found.append(key)
    }
    return found
  }

  /// The keys withheld for a row of another key, which their newest command ends.
  var barred: [KeyIndex] {
    behind.filter { key in
      let known = keys[Int(key.rawValue)]
      return !known.barriers.isEmpty && known.urgentNumber == 0
    }
  }

  // MARK: - The journal's thread

  /// The next work for the journal's thread, if it is due.
  mutating func nextWork(
    _ identifiers: CommandIdentifiers,
    at now: Moment
  ) -> JournalWork? {
    guard !isClosing, let due = plan.nextDeadline, due <= now else { return nil }
    let (keys, journalKeys) = (keys, journalKeys)
    return plan.nextWork(at: now) { number, sequence in
      let place = Int(journalKeys[Int(number.rawValue)].rawValue)
      guard let command = keys[place].commands.unwritten(sequence) else {
        preconditionFailure("The journal writes only values whose commands have not ended.")
      }
      return DurableValue(
        command.value,
        id: identifiers.id(
          of: command.number,
          acceptedAt: command.acceptedAt,
          given: command.origin?.id
        ),
        origin: command.origin,
        options: command.options
      )
    }
  }

  mutating func finished(_ result: JournalResult, at now: Moment) {
    plan.completed(result, at: now)
    mayRelease = true
  }

  // MARK: - Values of an earlier process

  /// Moves what the plan reported to the backlog.
  mutating func collectEvents(at now: Moment) {
    for event in plan.takeEvents() { backlog.append((event, now)) }
  }

  mutating func takeResumed() -> [ResumedValue] {
    defer { resumed.removeAll(keepingCapacity: true) }
    return resumed
  }

  /// Whether the clocks must be read now; asks once.
  mutating func needsClock(at now: Moment) -> Bool {
    guard !awaitsClock, let due = plan.replayDeadline, due <= now else { return false }
    awaitsClock = true
    return true
  }

  /// Judges the age of stored values; asks again in a second where it cannot be told yet.
  mutating func judge(_ clock: JournalClock) {
    awaitsClock = false
    plan.decideReplay(clock)
    collectEvents(at: clock.moment)
  }
}

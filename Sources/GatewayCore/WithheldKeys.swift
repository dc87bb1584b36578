// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import LastOut

/// Decides which key must not be sent yet.
///
/// A key is withheld while a crash would send an older value after its newest one, or an older
/// value of another key of which either ends the other (`ends:`, `excludes:`). An urgent command
/// waits for that at most ``patience``.
struct WithheldKeys {
  /// The newest command of a key, and what must leave the disk before it.
  struct Command {
    let key: KeyIndex
    /// The number of its value in the journal; `nil` for an action, which has none.
    let sequence: UInt64?
    /// Keys whose rows must not follow it.
    let others: [Rival]
    /// That concerns those rows up to this sequence number.
    let ended: UInt64
    /// Its number in the state machine if it is urgent, else `nil`.
    let urgentNumber: UInt64?
  }

  /// A row of another key that must be gone, and must not be written any more, before a command is
  /// sent.
  private struct Barrier {
    let rival: Rival
    /// Rows up to this sequence number.
    let sequence: UInt64
  }

  private struct Key {
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
  static let patience = Duration.milliseconds(250)

  private var keys: LazyArray<Key>
  /// Keys of which a crash would send something that their newest command must not be followed by.
  private(set) var behind: [KeyIndex] = []
  /// The other keys whose rows they wait for.
  private var barring: Set<KeyIndex> = []
  /// Something happened that may release one of them.
  private var mayRelease = false
  /// When the first row that withholds one of them expires.
  private var nextExpiry: Moment?
  /// When the first urgent command among them stops waiting for the disk.
  private(set) var patienceEnds: Moment?

  init(keys count: Int) {
    keys = LazyArray(repeating: Key(), count: count)
  }

  /// Makes room for more keys.
  mutating func extend(toKeys count: Int) {
    keys.extend(to: count)
  }

  func contains(_ key: KeyIndex) -> Bool { keys[Int(key.rawValue)].isBehind }

  /// Whether the key's newest command waits for rows of other keys to be removed.
  func hasBarriers(_ key: KeyIndex) -> Bool { !keys[Int(key.rawValue)].barriers.isEmpty }

  /// Whether a command of another key waits for the key's row to be removed.
  func isBarrier(_ key: KeyIndex) -> Bool { !barring.isEmpty && barring.contains(key) }

  /// Whether a key that is withheld may be sent all the same, because nothing can be written.
  func isOpen(_ key: KeyIndex) -> Bool { keys[Int(key.rawValue)].isOpen }

  /// Whether `number` is the key's newest urgent command, which waits to be sent.
  func isUrgent(_ number: UInt64, of key: KeyIndex) -> Bool {
    keys[Int(key.rawValue)].urgentNumber == number
  }

  /// The keys withheld for a row of another key that a crash would send, of which a crash would lose
  /// the newest value.
  func barred(_ rows: borrowing JournalRows, at now: Moment) -> [KeyIndex] {
    var found: [KeyIndex] = []
    for key in behind where isBarred(key, rows, at: now) && !rows.isNewestDurable(key) {
      found.append(key)
    }
    return found
  }

  private func isBarred(
    _ key: KeyIndex,
    _ rows: borrowing JournalRows,
    at now: Moment
  ) -> Bool {
    guard keys[Int(key.rawValue)].urgentNumber == 0, !rows.isNewestUrgent(key) else { return false }
    for barrier in keys[Int(key.rawValue)].barriers where Self.isOnDisk(barrier, rows, at: now) {
      return true
    }
    return false
  }

  // MARK: - Withholding

  /// Withholds a key if a crash would send something that its newest command must not be followed
  /// by.
  mutating func add(
    _ command: Command,
    _ rows: inout JournalRows,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) {
    let key = command.key
    let place = Int(key.rawValue)
    for rival in command.others {
      let newest = rows.newestSequence(of: rival.key)
      let ended = rival.agrees && newest > 0 ? min(command.ended, newest - 1) : command.ended
      rows.discardUnresumed(rival, through: ended, in: commands.registry, at: now)
      let barrier = Barrier(rival: rival, sequence: ended)
      guard Self.stands(barrier, rows, at: now) else { continue }
      keys[place].barriers.removeAll { $0.rival == rival }
      keys[place].barriers.append(barrier)
      barring.insert(rival.key)
    }
    guard !mayLeave(key, newest: command.sequence, rows, at: now) else { return }
    if let number = command.urgentNumber { wait(key, for: number, at: now) }
    if rows.plan.fault != nil { mayRelease = true }  // There is nothing to wait for.
    recordExpiry(of: key, rows)
    if !keys[place].isBehind { behind.append(key) }
    keys[place].isBehind = true
    keys[place].isOpen = false
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
    commands.withhold(key, exceptUrgent: !isWaiting)
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

  private func mayLeave(
    _ key: KeyIndex,
    newest sequence: UInt64?,
    _ rows: borrowing JournalRows,
    at now: Moment
  ) -> Bool {
    if let sequence, rows.holdsOlder(key, than: sequence, at: now) { return false }
    for barrier in keys[Int(key.rawValue)].barriers where Self.stands(barrier, rows, at: now) {
      return false
    }
    return true
  }

  /// Whether a crash would send the row that a barrier names, now or after the next commit.
  private static func stands(
    _ barrier: Barrier,
    _ rows: borrowing JournalRows,
    at now: Moment
  ) -> Bool {
    isOnDisk(barrier, rows, at: now) || hasCommand(barrier, rows)
  }

  private static func isOnDisk(
    _ barrier: Barrier,
    _ rows: borrowing JournalRows,
    at now: Moment
  ) -> Bool {
    rows.holdsOlder(barrier.rival, than: barrier.sequence + 1, at: now)
  }

  /// Whether the row that a barrier names is that of a command that has not ended: what a command
  /// ends has ended, but what would end it is still sent first.
  private static func hasCommand(_ barrier: Barrier, _ rows: borrowing JournalRows) -> Bool {
    barrier.rival.isUrgentOnly
      && rows.hasUrgentCommand(barrier.rival.key, through: barrier.sequence)
  }

  private mutating func recordExpiry(of key: KeyIndex, _ rows: borrowing JournalRows) {
    for row in [key] + keys[Int(key.rawValue)].barriers.map(\.rival.key) {
      guard let expiry = rows.expiry(of: row) else { continue }
      nextExpiry = min(nextExpiry ?? expiry, expiry)
    }
  }

  /// Forgets a key: another process has it.
  mutating func forget(_ key: KeyIndex, in commands: inout CommandStateMachine) {
    guard keys[Int(key.rawValue)].isBehind else { return }
    keys[Int(key.rawValue)] = Key()
    behind.removeAll { $0 == key }
    commands.release(key)
    mayRelease = true  // The next release looks at the times again.
  }

  // MARK: - Releasing

  /// A commit ended: rows may be gone.
  mutating func diskChanged() { mayRelease = true }

  /// A command of the key was sent or has ended.
  mutating func commandFinished(_ key: KeyIndex, _ rows: borrowing JournalRows) {
    let mayLeave = keys[Int(key.rawValue)].isBehind && !rows.isNewestWaiting(key)
    if mayLeave || isBarrier(key) { mayRelease = true }
  }

  /// Releases the keys that may be sent.
  ///
  /// That is so when a crash would send nothing after their newest command that it must not, and
  /// when nothing can be written anyway. An urgent command whose ``patience`` has ended may be sent
  /// alone. Looks at the keys only after something happened that can release one.
  ///
  /// - Returns: Keys whose rows an urgent command could not wait for.
  mutating func release(
    _ rows: borrowing JournalRows,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) -> [KeyIndex] {
    guard !behind.isEmpty || mayRelease else { return [] }
    let isImpatient = patienceEnds.map { $0 <= now } ?? false
    let isExpired = nextExpiry.map { $0 <= now } ?? false
    guard isImpatient || isExpired || mayRelease else { return [] }
    mayRelease = false
    nextExpiry = nil
    patienceEnds = nil
    barring = []
    var exposed: [KeyIndex] = []
    var kept: [KeyIndex] = []
    for key in behind {
      guard isStillBehind(key, rows, at: now) else {
        keys[Int(key.rawValue)] = Key()
        commands.release(key)
        continue
      }
      kept.append(key)
      for barrier in keys[Int(key.rawValue)].barriers { barring.insert(barrier.rival.key) }
      recordExpiry(of: key, rows)
      exposed += stopWaiting(key, rows, in: &commands, at: now)
      if let end = keys[Int(key.rawValue)].patienceEnds {
        patienceEnds = min(patienceEnds ?? end, end)
      }
    }
    behind = kept
    return exposed
  }

  private func isStillBehind(
    _ key: KeyIndex,
    _ rows: borrowing JournalRows,
    at now: Moment
  ) -> Bool {
    let newest = rows.waiting(key)
    if rows.plan.fault != nil, newest == nil, keys[Int(key.rawValue)].urgentNumber == 0 {
      return false
    }
    // Where nothing waits, a group's message may still give the device a value.
    return !mayLeave(key, newest: newest ?? rows.inFlight(key) ?? .max, rows, at: now)
  }

  /// Lets a key that is still behind be sent while nothing can be written, and an urgent command of
  /// it once its patience has ended.
  ///
  /// - Returns: The rows that the urgent command did not wait for.
  private mutating func stopWaiting(
    _ key: KeyIndex,
    _ rows: borrowing JournalRows,
    in commands: inout CommandStateMachine,
    at now: Moment
  ) -> [KeyIndex] {
    let place = Int(key.rawValue)
    let hasFault = rows.plan.fault != nil
    let wasOpen = keys[place].isOpen
    if wasOpen, !hasFault, keys[place].urgentNumber != 0 {
      // The disk works again: it is worth waiting for.
      keys[place].patienceEnds = now.advanced(by: Self.patience)
    }
    let isImpatient = keys[place].patienceEnds.map { $0 <= now || hasFault } ?? false
    if isImpatient { keys[place].patienceEnds = nil }
    // A row that is on the disk stays there: its key's command is rejected when the attempt has
    // failed.
    let isOpen =
      hasFault && !isBarred(key, rows, at: now)
      && !keys[place].barriers.contains { Self.hasCommand($0, rows) }
    keys[place].isOpen = isOpen
    if isOpen {
      commands.release(key)
    } else if isImpatient || wasOpen {
      withhold(key, in: &commands, at: now)
    }
    return isImpatient ? rowsAhead(of: key, rows, at: now) : []
  }

  /// The keys whose rows a crash would send after the newest command of `key`.
  private func rowsAhead(
    of key: KeyIndex,
    _ rows: borrowing JournalRows,
    at now: Moment
  ) -> [KeyIndex] {
    var found: [KeyIndex] = []
    for barrier in keys[Int(key.rawValue)].barriers where Self.stands(barrier, rows, at: now) {
      found.append(barrier.rival.key)
    }
    if let newest = rows.waiting(key), rows.holdsOlder(key, than: newest, at: now) {
      found.append(key)
    }
    return found
  }
}

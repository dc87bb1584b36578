// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Journal
import LastOut
import Operations

/// The gateway's journal, which of its rows stands for which command, and what waits for the disk.
final class JournalLink {
  /// A command's number in the machine and its value's in the journal.
  struct Ticket {
    var number: UInt64
    var sequence: UInt64
    var isUrgent: Bool
  }

  /// The commands of one key that a restart would send: as in the journal, the newest that has not
  /// left, an older one that has not left either and may still, and the one that the broker has not
  /// acknowledged.
  struct Row {
    var newest: Ticket?
    var earlier: Ticket?
    var underWay: Ticket?
  }

  let path: String
  let journal: Journal
  var rows: [Row]
  var held = HeldEvents()
  /// Keys that must not leave before their newest value is on the disk.
  private(set) var withheld: [KeyIndex] = []
  private var isWithheld: [Bool]
  /// When the first urgent value among them leaves whatever the disk does.
  private var patienceEnds: Moment?
  /// How long an urgent value waits for its commit at most.
  static let patience = Duration.milliseconds(250)
  /// The file is being closed.
  var isClosing = false
  private let waker: Waker

  /// - Throws: ``JournalRefusal`` when the file must not be used.
  init(
    path: String,
    settings: JournalPlan.Settings,
    keys: Int,
    loop: EventLoop
  ) throws(JournalRefusal) {
    let waker: Waker
    do throws(OperationsError) {
      // What is to be done is done after the batch.
      waker = try loop.makeWaker(named: "journal") {}
    } catch {
      throw .noThread(path: path, reason: error.description)
    }
    self.path = path
    self.waker = waker
    journal = try Journal(path: path, settings: settings) { waker.wake() }
    rows = Array(repeating: Row(), count: keys)
    isWithheld = Array(repeating: false, count: keys)
  }

  /// When the journal wants its turn; `nil` when only its writer has something to say.
  var nextDeadline: Moment? {
    guard !isClosing else { return nil }
    guard let patienceEnds else { return journal.nextDeadline }
    return min(patienceEnds, journal.nextDeadline ?? patienceEnds)
  }

  /// Makes room for more keys.
  func extend(keys: Int) {
    for _ in rows.count..<keys {
      rows.append(Row())
      isWithheld.append(false)
    }
  }

  /// Ties a command to its value in the journal, as the key's newest.
  func bind(_ key: KeyIndex, number: UInt64, sequence: UInt64, isUrgent: Bool) {
    let place = Int(key.rawValue)
    if rows[place].earlier == nil { rows[place].earlier = rows[place].newest }
    rows[place].newest = Ticket(number: number, sequence: sequence, isUrgent: isUrgent)
  }

  /// A command was handed to the broker.
  func left(_ key: KeyIndex, named name: String, number: UInt64) {
    let place = Int(key.rawValue)
    let ticket: Ticket
    if let newest = rows[place].newest, newest.number == number {
      ticket = newest
      rows[place].newest = nil
      rows[place].earlier = nil  // Nothing older may follow.
    } else if let earlier = rows[place].earlier, earlier.number == number {
      ticket = earlier
      rows[place].earlier = nil
    } else {
      return
    }
    rows[place].underWay = ticket
    journal.sending(name, sequence: ticket.sequence)
  }

  /// A command is over as far as a crash is concerned.
  ///
  /// - Returns: Whether what waits of its key may be told at once.
  func ended(
    _ key: KeyIndex,
    named name: String,
    number: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    let place = Int(key.rawValue)
    let ticket: Ticket
    if let newest = rows[place].newest, newest.number == number {
      ticket = newest
      rows[place].newest = nil
    } else if let earlier = rows[place].earlier, earlier.number == number {
      ticket = earlier
      rows[place].earlier = nil
    } else if let underWay = rows[place].underWay, underWay.number == number {
      ticket = underWay
      rows[place].underWay = nil
    } else {
      return false
    }
    return journal.ended(name, ticket.sequence, at: now, promptly: promptly)
  }

  /// Notes that a key must not leave; `false` when that is known.
  func withhold(_ key: KeyIndex, at now: Moment) -> Bool {
    if rows[Int(key.rawValue)].newest?.isUrgent == true, patienceEnds == nil {
      patienceEnds = now.advanced(by: Self.patience)
    }
    guard !isWithheld[Int(key.rawValue)] else { return false }
    isWithheld[Int(key.rawValue)] = true
    withheld.append(key)
    return true
  }

  /// Takes the keys that may leave out of those that must not.
  ///
  /// They may when no crash would send something older after their newest value, when nothing can
  /// be written anyway, and when they are urgent and have waited long enough.
  func takeReleased(at now: Moment, named name: (KeyIndex) -> String) -> [KeyIndex] {
    guard !withheld.isEmpty else { return [] }
    let isImpatient = patienceEnds.map { $0 <= now } ?? false
    if isImpatient { patienceEnds = nil }
    var released: [KeyIndex] = []
    withheld.removeAll { key in
      let row = rows[Int(key.rawValue)]
      if journal.fault == nil, let ticket = row.newest ?? row.earlier,
        !(isImpatient && ticket.isUrgent),
        journal.holdsOlder(name(key), than: ticket.sequence, at: now)
      {
        return false
      }
      isWithheld[Int(key.rawValue)] = false
      released.append(key)
      return true
    }
    if withheld.isEmpty { patienceEnds = nil }
    return released
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Journal
import JSON
import LastOut
import Operations

/// The gateway's journal, which of its rows stands for which command, and what waits for the disk.
final class JournalLink {
  /// A command's number in the machine and its value's in the journal, and what goes to the disk of
  /// it, if it ever gets there.
  ///
  /// A row has three, and each change moves two of them, so there are no optionals around it, which
  /// the compiler copies and ends by way of metadata.
  struct Ticket {
    var number: UInt64 = 0
    /// 0 where there is no command.
    var sequence: UInt64 = 0
    var isUrgent = false
    /// Whether the journal has the value already, so that what follows is without meaning.
    var isWritten = true
    var value = Value.boolean(false)
    var acceptedAt = Moment.zero
    var origin: ChangeOrigin?
    var options: [JSONValue.Member]?

    var isNone: Bool { sequence == 0 }

    func isOf(_ number: UInt64) -> Bool { self.number == number && !isNone }

    /// Leaves none, and returns the sequence.
    mutating func end() -> UInt64 {
      let ended = sequence
      self = Ticket()
      return ended
    }
  }

  /// The commands of one key that a restart would send: as in the journal, the newest that has not
  /// left, an older one that has not left either and may still, and the one that the broker has not
  /// acknowledged.
  struct Row {
    var newest = Ticket()
    var earlier = Ticket()
    var underWay = Ticket()

    /// The newest that has not left, and whether it is urgent.
    var waiting: (sequence: UInt64, isUrgent: Bool)? {
      if !newest.isNone { return (newest.sequence, newest.isUrgent) }
      if !earlier.isNone { return (earlier.sequence, earlier.isUrgent) }
      return nil
    }

    /// Makes room for the newest command.
    mutating func push() {
      if earlier.isNone { swap(&earlier, &newest) }
    }

    /// A command was handed to the broker; its sequence, unless it is not known.
    mutating func left(_ number: UInt64) -> UInt64? {
      if newest.isOf(number) {
        swap(&underWay, &newest)
        newest = Ticket()
        earlier = Ticket()  // Nothing older may follow.
      } else if earlier.isOf(number) {
        swap(&underWay, &earlier)
        earlier = Ticket()
      } else {
        return nil
      }
      return underWay.sequence
    }

    /// A command is over; its sequence, unless it is not known.
    mutating func ended(_ number: UInt64) -> UInt64? {
      if earlier.isOf(number) { return earlier.end() }
      if newest.isOf(number) { return newest.end() }
      if underWay.isOf(number) { return underWay.end() }
      return nil
    }

    /// The command whose value the journal has not been given.
    func unwritten(_ sequence: UInt64) -> Ticket? {
      for ticket in [newest, earlier, underWay]
      where ticket.sequence == sequence && !ticket.isWritten { return ticket }
      return nil
    }
  }

  let path: String
  let journal: Journal
  var rows: [Row]
  var held = HeldEvents()
  /// Keys that must not leave before their newest value is on the disk.
  private(set) var withheld: [KeyIndex] = []
  /// Something has happened that may let some of them leave.
  private var mayRelease = false
  /// When the first row that holds one of them back loses its force.
  private var nextExpiry: Moment?
  /// The same by key.
  private var isWithheld: [Bool]
  /// The journal's keys, and each key's number in the journal, once it was asked for.
  private var keys: [KeyIndex] = []
  private var numbers: [JournalKey?]
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
    numbers = Array(repeating: nil, count: keys)
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
      numbers.append(nil)
    }
  }

  /// The key's number in the journal.
  func journalKey(_ key: KeyIndex, named name: @autoclosure () -> String) -> JournalKey {
    if let known = numbers[Int(key.rawValue)] { return known }
    let number = journal.number(of: name())
    numbers[Int(key.rawValue)] = number
    while keys.count <= Int(number.rawValue) { keys.append(key) }
    keys[Int(number.rawValue)] = key
    return number
  }

  /// Takes the value of an accepted command, which is written with the next commit if it is still
  /// the key's newest then.
  ///
  /// `replaced` is the number of the command that ends with it, if that is the key's newest.
  ///
  /// - Returns: The value's number, whether or not the journal can be written at the moment.
  func accept(
    _ event: borrowing CommandEvent,
    _ value: Value,
    replacing replaced: UInt64? = nil,
    named name: @autoclosure () -> String,
    expiresAt: Moment,
    isUrgent: Bool
  ) -> UInt64 {
    let acceptedAt = event.acceptedAt
    let place = Int(event.key.rawValue)
    let isReplacing = replaced.map { rows[place].newest.isOf($0) } ?? false
    let sequence = journal.accept(
      journalKey(event.key, named: name()),
      replacing: isReplacing ? rows[place].newest.sequence : nil,
      at: acceptedAt,
      expiresAt: expiresAt,
      isUrgent: isUrgent
    )
    if !isReplacing { rows[place].push() }
    rows[place].newest = Ticket(
      number: event.number,
      sequence: sequence,
      isUrgent: isUrgent,
      isWritten: false,
      value: value,
      acceptedAt: acceptedAt,
      origin: event.origin,
      options: event.options
    )
    return sequence
  }

  /// Ties a command to its value in the journal, as the key's newest.
  func bind(_ key: KeyIndex, number: UInt64, sequence: UInt64, isUrgent: Bool) {
    let place = Int(key.rawValue)
    rows[place].push()
    rows[place].newest = Ticket(number: number, sequence: sequence, isUrgent: isUrgent)
  }

  /// The command of a value that ``accept(_:_:replacing:named:expiresAt:isUrgent:)`` has taken.
  func command(_ key: JournalKey, _ sequence: UInt64) -> Ticket {
    guard let found = rows[Int(keys[Int(key.rawValue)].rawValue)].unwritten(sequence) else {
      preconditionFailure("The journal writes only values whose commands are not over.")
    }
    return found
  }

  /// A command was handed to the broker.
  func left(_ key: KeyIndex, named name: @autoclosure () -> String, number: UInt64) {
    guard let sequence = rows[Int(key.rawValue)].left(number) else { return }
    noteWaiting(key)
    journal.sending(journalKey(key, named: name()), sequence: sequence)
  }

  /// A command is over as far as a crash is concerned.
  ///
  /// - Returns: Whether what waits of its key may be told at once.
  func ended(
    _ key: KeyIndex,
    named name: @autoclosure () -> String,
    number: UInt64,
    at now: Moment,
    promptly: Bool
  ) -> Bool {
    guard let sequence = rows[Int(key.rawValue)].ended(number) else { return false }
    noteWaiting(key)
    return journal.ended(journalKey(key, named: name()), sequence, at: now, promptly: promptly)
  }

  /// Whether a key must not leave at the moment.
  func withholds(_ key: KeyIndex) -> Bool { isWithheld[Int(key.rawValue)] }

  /// A command of a key has left or is over: what is the newest that waits may have changed.
  private func noteWaiting(_ key: KeyIndex) {
    let place = Int(key.rawValue)
    if isWithheld[place], rows[place].newest.isNone { mayRelease = true }
  }

  /// Notes that a key must not leave; `false` when that is known.
  func withhold(_ key: KeyIndex, at now: Moment) -> Bool {
    let place = Int(key.rawValue)
    if patienceEnds == nil, rows[place].newest.isUrgent {
      patienceEnds = now.advanced(by: Self.patience)
    }
    guard !isWithheld[place] else { return false }
    isWithheld[place] = true
    withheld.append(key)
    if let number = numbers[place] { noteExpiry(of: number) }
    return true
  }

  private func noteExpiry(of key: JournalKey) {
    guard let expiry = journal.rowExpiry(of: key) else { return }
    nextExpiry = min(nextExpiry ?? expiry, expiry)
  }

  /// Takes the writer's results and hands it what is due.
  func advance(to now: Moment) {
    if journal.advance(to: now) { mayRelease = true }
  }

  /// Takes the keys that may leave out of those that must not.
  ///
  /// They may when no crash would send something older after their newest value, when nothing can
  /// be written anyway, and when they are urgent and have waited long enough. They are looked at
  /// only after something has happened that could let one of them leave.
  func takeReleased(at now: Moment, named name: (KeyIndex) -> String) -> [KeyIndex] {
    guard !withheld.isEmpty else { return [] }
    let isImpatient = patienceEnds.map { $0 <= now } ?? false
    let isExpired = nextExpiry.map { $0 <= now } ?? false
    guard isImpatient || isExpired || mayRelease else { return [] }
    if isImpatient { patienceEnds = nil }
    mayRelease = false
    nextExpiry = nil
    let isBroken = journal.isBroken
    var released: [KeyIndex] = []
    withheld.removeAll { key in
      let place = Int(key.rawValue)
      if !isBroken, let waiting = rows[place].waiting, !(isImpatient && waiting.isUrgent) {
        let number = journalKey(key, named: name(key))
        if journal.holdsOlder(number, than: waiting.sequence, at: now) {
          noteExpiry(of: number)
          return false
        }
      }
      isWithheld[place] = false
      released.append(key)
      return true
    }
    if withheld.isEmpty { patienceEnds = nil }
    return released
  }
}

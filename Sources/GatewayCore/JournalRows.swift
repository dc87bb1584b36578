// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
package import Durability
import LastOut
import Values

/// The journal's rows by key: the sequence number of each command that a restart would send again,
/// and what the disk still holds of older ones.
package struct JournalRows {
  /// What the journal has of one key.
  private struct Key {
    /// The key's number in the journal, once it was asked for.
    var number: JournalKey?
    var commands = DurableCommands()
  }

  package internal(set) var plan: JournalPlan
  /// Commands that come back if newer ones cannot be kept.
  private var replaced: ReplacedCommands
  private var keys: LazyArray<Key>
  /// The keys by their numbers in the journal.
  private var keysByNumber: [KeyIndex] = []

  init(plan: JournalPlan, keys count: Int, keepsReplaced: Bool = false) {
    self.plan = plan
    replaced = ReplacedCommands(keepsStored: keepsReplaced)
    keys = LazyArray(repeating: Key(), count: count)
  }

  /// Makes room for more keys.
  mutating func extend(toKeys count: Int) {
    keys.extend(to: count)
  }

  // MARK: - Numbers

  /// Learns the numbers of keys that the journal's file names.
  mutating func learnNumbers(in registry: Registry) {
    for name in plan.names.dropFirst(keysByNumber.count) {
      // A name that no key has any more keeps its place; nothing refers to it.
      let key = registry.index(ofKey: name.utf8.span) ?? KeyIndex(-1)
      let number = plan.number(of: name)
      keysByNumber.append(key)
      if key.rawValue >= 0, registry[key].key == name { keys[Int(key.rawValue)].number = number }
    }
  }

  /// The key's number in the journal.
  private mutating func number(of key: KeyIndex, in registry: Registry) -> JournalKey {
    let place = Int(key.rawValue)
    if let known = keys[place].number { return known }
    learnNumbers(in: registry)
    let number = plan.number(of: registry.properties[place].key)
    keys[place].number = number
    if number.rawValue == keysByNumber.count {
      keysByNumber.append(key)
    } else {
      keysByNumber[Int(number.rawValue)] = key  // The file named it before a reload brought it.
    }
    return number
  }

  /// Learns which of the values that were not resumed yet are urgent.
  mutating func learnUrgent(in registry: Registry, at now: Moment) {
    for entry in plan.undecided {
      guard let stored = entry.content.decoded as? DurableValue,
        let key = registry.index(ofKey: entry.key.utf8.span)
      else { continue }
      let property = registry.definition(of: key).property
      if let value = try? property.value(from: stored.value), property.ends(value) {
        plan.markUrgent(plan.number(of: entry.key), at: now)
      }
    }
  }

  // MARK: - Commands

  /// Hands a value to the journal, which writes it with the next commit if it is still the newest
  /// of its key then.
  ///
  /// `replaced` is the number of the command that ends because this one is newer.
  ///
  /// - Returns: The value's sequence number.
  mutating func accept(
    _ event: CommandEvent,
    _ value: Value,
    replacing replaced: UInt64?,
    until expiresAt: Moment,
    in registry: Registry
  ) -> UInt64 {
    let place = Int(event.key.rawValue)
    let before = keys[place].commands.replaceable(evenIfNotUrgent: self.replaced.keepsStored)
    let isReplacing = replaced.map { keys[place].commands.newest.isNumber($0) } ?? false
    let sequence = plan.accept(
      number(of: event.key, in: registry),
      replacing: isReplacing ? keys[place].commands.newest.sequence : nil,
      at: event.acceptedAt,
      expiresAt: expiresAt,
      isUrgent: event.isUrgent || registry[event.key].property.ends(value)
    )
    if let before { self.replaced.keep(before, of: event.key, before: sequence, plan) }
    let command = DurableCommand(
      number: event.number,
      sequence: sequence,
      isUrgent: event.isUrgent,
      isWritten: false,
      value: value,
      acceptedAt: event.acceptedAt,
      expiresAt: expiresAt,
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

  /// Records that a value of an earlier process is a command of this one.
  mutating func resume(_ key: KeyIndex, _ command: DurableCommand, in registry: Registry) {
    let number = self.number(of: key, in: registry)
    if command.isUrgent || registry[key].property.ends(command.value) {
      plan.markUrgent(number, at: command.acceptedAt)
    }
    keys[Int(key.rawValue)].commands.push(command)
  }

  // MARK: - Values that are restored

  /// Removes and returns the command of a key that was not sent and comes back: the newer ones
  /// cannot be kept, and are rejected.
  mutating func popRestorable(_ key: KeyIndex, at now: Moment) -> DurableCommand? {
    replaced.pop(key, waiting: keys[Int(key.rawValue)].commands.earlier, plan, at: now)
  }

  /// It was told that everything up to a sequence number was accepted, although it is not stored.
  mutating func told(through sequence: UInt64) { replaced.toldThrough = sequence }

  /// It was told that a key's newest command was accepted, although it is not stored.
  mutating func told(_ key: KeyIndex) { replaced.told(key) }

  /// A command is back under another number.
  mutating func restore(_ key: KeyIndex, _ command: DurableCommand, in registry: Registry) {
    keys[Int(key.rawValue)].commands.push(command)
    plan.restore(
      number(of: key, in: registry),
      sequence: command.sequence,
      acceptedAt: command.acceptedAt,
      expiresAt: command.expiresAt,
      isUrgent: command.isUrgent || registry[key].property.ends(command.value)
    )
  }

  /// Records that a command was handed to the broker; `false` for one without a row.
  mutating func sending(_ event: CommandEvent, in registry: Registry) -> Bool {
    guard let sequence = keys[Int(event.key.rawValue)].commands.sending(event.number) else {
      return false
    }
    replaced.forget(event.key)
    plan.sending(number(of: event.key, in: registry), sequence: sequence)
    return true
  }

  /// Records that a crash must not, or need not, send a command again.
  ///
  /// `promptly`: its row is removed with the next commit; else lazily.
  ///
  /// - Returns: Whether the queued events of its key may be emitted without a commit; `nil` for a
  ///   command without a row.
  mutating func ended(
    _ event: CommandEvent,
    promptly: Bool,
    in registry: Registry,
    at now: Moment
  ) -> Bool? {
    let isNewest = keys[Int(event.key.rawValue)].commands.newest.isNumber(event.number)
    if event.phase == .superseded, replaced.keepsStored {
      let lost = keys[Int(event.key.rawValue)].commands.inFlight
      if lost.isNumber(event.number) { replaced.keepLost(lost, of: event.key, plan) }
    }
    guard let sequence = keys[Int(event.key.rawValue)].commands.remove(event.number) else {
      return nil
    }
    if isNewest { replaced.forget(event.key) }
    return plan.ended(
      number(of: event.key, in: registry),
      sequence,
      at: now,
      promptly: promptly
    )
  }

  /// Forgets what the journal has of a key: another process has it.
  mutating func forget(_ key: KeyIndex) {
    keys[Int(key.rawValue)].commands = DurableCommands()
    replaced.forget(key)
    if let number = keys[Int(key.rawValue)].number { plan.forget(number) }
  }

  /// Whether the journal has of a key what it should have.
  func isWritten(_ key: KeyIndex) -> Bool {
    keys[Int(key.rawValue)].number.map { plan.isWritten($0) } ?? true
  }

  /// The sequence number of the key's newest value that has not been sent.
  func waiting(_ key: KeyIndex) -> UInt64? { keys[Int(key.rawValue)].commands.waiting }

  /// The sequence number of the key's value that the broker has not acknowledged.
  func inFlight(_ key: KeyIndex) -> UInt64? {
    let command = keys[Int(key.rawValue)].commands.inFlight
    return command.isNone ? nil : command.sequence
  }

  /// The commands that have not been sent, those of one key in order.
  var waitingCommands: [(key: KeyIndex, command: DurableCommand)] {
    keys.indices.flatMap { place in
      [keys[place].commands.earlier, keys[place].commands.newest].filter { !$0.isNone }
        .map { (KeyIndex(Int32(place)), $0) }
    }
  }

  /// The sequence number of the key's newest value that waits or was sent; 0 when there is none.
  func newestSequence(of key: KeyIndex) -> UInt64 {
    keys[Int(key.rawValue)].commands.newestSequence
  }

  /// Whether the newest command of a key has not been sent and has not ended.
  func isNewestWaiting(_ key: KeyIndex) -> Bool { !keys[Int(key.rawValue)].commands.newest.isNone }

  func isNewestUrgent(_ key: KeyIndex) -> Bool { keys[Int(key.rawValue)].commands.newest.isUrgent }

  /// Whether the key's newest command is stored.
  func isNewestDurable(_ key: KeyIndex) -> Bool {
    let newest = keys[Int(key.rawValue)].commands.newest
    return !newest.isNone && (newest.isWritten || newest.sequence <= plan.durableThrough)
  }

  /// The number of the key's newest command that was handed to the broker.
  func lastSent(of key: KeyIndex) -> UInt64 { keys[Int(key.rawValue)].commands.lastSent }

  // MARK: - The disk

  /// Whether a crash would send a value of `key` that is older than `sequence`.
  func holdsOlder(_ key: KeyIndex, than sequence: UInt64, at now: Moment) -> Bool {
    holdsOlder(Rival(key: key), than: sequence, at: now)
  }

  /// Whether a crash would send a value of a key that is older than `sequence`.
  func holdsOlder(_ rival: Rival, than sequence: UInt64, at now: Moment) -> Bool {
    guard let number = keys[Int(rival.key.rawValue)].number else { return false }
    return plan.holdsOlder(number, than: sequence, isUrgentOnly: rival.isUrgentOnly, at: now)
  }

  /// Whether a key has an urgent command up to a sequence number that the broker has not
  /// acknowledged.
  func hasUrgentCommand(_ key: KeyIndex, through sequence: UInt64) -> Bool {
    keys[Int(key.rawValue)].commands.hasUrgent(through: sequence)
      || replaced.hasUrgent(key, through: sequence, plan)
  }

  /// When the key's row on the disk expires.
  func expiry(of key: KeyIndex) -> Moment? {
    keys[Int(key.rawValue)].number.flatMap { plan.rowExpiry(of: $0) }
  }

  /// Drops a stored value that was not resumed yet, up to a sequence number.
  mutating func discardUnresumed(
    _ rival: Rival,
    through sequence: UInt64,
    in registry: Registry,
    at now: Moment
  ) {
    // A file that has not been read may hold any key.
    let known = keys[Int(rival.key.rawValue)].number
    guard let number = plan.isLoaded ? known : number(of: rival.key, in: registry) else { return }
    plan.discardUnresumed(number, through: sequence, isUrgentOnly: rival.isUrgentOnly, at: now)
  }

  /// Whether the disk has the key's newest value.
  func keeps(_ key: KeyIndex) -> Bool {
    keys[Int(key.rawValue)].number.map { plan.keeps($0) } ?? false
  }

  /// The next work for the journal's thread, if it is due.
  mutating func nextWork(_ identifiers: CommandIdentifiers, at now: Moment) -> JournalWork? {
    guard let due = plan.nextDeadline, due <= now else { return nil }
    let (keys, keysByNumber) = (keys, keysByNumber)
    return plan.nextWork(at: now) { number, sequence in
      let place = Int(keysByNumber[Int(number.rawValue)].rawValue)
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
}

extension Property {
  /// Whether a value ends those of other keys: an urgent one, and a 0 that turns a lamp off.
  fileprivate func ends(_ value: Value) -> Bool {
    urgent.contains(value) || !implies.isEmpty && value == .number(0)
  }
}

/// Commands that were not sent and that newer ones of their keys have replaced: they come back if
/// those cannot be kept and are rejected.
///
/// That is so for an urgent command, until it is told that a newer one was accepted, and, where the
/// owner restores them, for the newest that the journal has.
struct ReplacedCommands {
  private struct Replaced {
    let command: DurableCommand
    /// The sequence number of the command that replaced it; 0 once it was told that one was
    /// accepted.
    var successor: UInt64
  }

  /// At most two of each key, oldest first: the newest that would come back now, and one that may
  /// once a commit has ended.
  private var commands: [KeyIndex: [Replaced]] = [:]
  /// Whether commands come back that the journal has.
  let keepsStored: Bool
  /// It was told that the commands up to this sequence number were accepted, durable or not.
  var toldThrough: UInt64 = 0

  init(keepsStored: Bool) { self.keepsStored = keepsStored }

  /// Keeps a command that the one with the number `successor` has replaced.
  mutating func keep(
    _ command: DurableCommand,
    of key: KeyIndex,
    before successor: UInt64,
    _ plan: borrowing JournalPlan
  ) {
    guard command.isUrgent || keepsStored && isInCommit(command, plan) else { return }
    let older = isDurable(command, plan) ? nil : newest(of: key, plan)
    commands[key] = (older.map { [$0] } ?? []) + [Replaced(command: command, successor: successor)]
  }

  /// Keeps a command that did not reach the broker, and that a newer one follows; only where
  /// commands come back that the journal has.
  mutating func keepLost(
    _ command: DurableCommand,
    of key: KeyIndex,
    _ plan: borrowing JournalPlan
  ) {
    guard isInCommit(command, plan) else { return }
    commands[key, default: []].insert(Replaced(command: command, successor: 0), at: 0)
  }

  /// It was told that the newest command of a key was accepted, although it is not stored.
  mutating func told(_ key: KeyIndex) {
    guard !commands.isEmpty, let places = commands[key]?.indices else { return }
    for place in places { commands[key]?[place].successor = 0 }
  }

  /// Forgets what was replaced: the newest command was sent, or has ended for good.
  mutating func forget(_ key: KeyIndex) {
    if !commands.isEmpty { commands[key] = nil }
  }

  /// Removes and returns the newest command of a key that comes back; `waiting` is one that waits
  /// behind the newest.
  mutating func pop(
    _ key: KeyIndex,
    waiting: DurableCommand,
    _ plan: borrowing JournalPlan,
    at now: Moment
  ) -> DurableCommand? {
    if keepsStored, !waiting.isNone {
      commands[key, default: []].append(Replaced(command: waiting, successor: 0))
    }
    let newest = newest(of: key, plan)?.command
    commands[key] = nil
    return newest.flatMap { $0.expiresAt > now ? $0 : nil }
  }

  /// Whether an urgent command of a key would come back, up to a sequence number.
  func hasUrgent(
    _ key: KeyIndex,
    through sequence: UInt64,
    _ plan: borrowing JournalPlan
  ) -> Bool {
    guard !commands.isEmpty, let replaced = commands[key] else { return false }
    return replaced.contains {
      $0.command.isUrgent && $0.command.sequence <= sequence && comesBack($0, plan)
    }
  }

  private func newest(of key: KeyIndex, _ plan: borrowing JournalPlan) -> Replaced? {
    var newest: Replaced?
    for replaced in commands[key] ?? [] where comesBack(replaced, plan) {
      if newest.map({ $0.command.sequence < replaced.command.sequence }) ?? true {
        newest = replaced
      }
    }
    return newest
  }

  private func comesBack(_ replaced: Replaced, _ plan: borrowing JournalPlan) -> Bool {
    let told = max(toldThrough, plan.durableThrough)
    if replaced.command.isUrgent, replaced.successor > told { return true }
    return keepsStored && isDurable(replaced.command, plan)
  }

  /// Whether a commit has a command, or had it: any other one that is replaced now is never stored.
  private func isInCommit(_ command: DurableCommand, _ plan: borrowing JournalPlan) -> Bool {
    command.isWritten || command.sequence <= plan.writtenThrough
  }

  private func isDurable(_ command: DurableCommand, _ plan: borrowing JournalPlan) -> Bool {
    command.isWritten || command.sequence <= plan.durableThrough
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Durability
import LastOut

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

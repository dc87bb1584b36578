// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import LastOut
import Values

/// What the commands of groups owe: each is accepted and sent at most once, ends once, and only
/// when all its members have, in the phase that follows from theirs.
struct GroupLedger {
  private struct Running {
    let place: Int
    let canConfirm: Bool
    /// The phases of each member's command so far.
    var members: [Int: [Phase]]
    var rejected: Int
    var told: [Phase] = []

    var areEnded: Bool { ends.count == members.count }

    /// The last phases of members whose commands have ended.
    var ends: [Phase] {
      members.values.compactMap { phases in
        phases.last.flatMap { [.accepted, .sending].contains($0) ? nil : $0 }
      }
    }
  }

  private var open: [UInt64: Running] = [:]
  private var newest: [Int: UInt64] = [:]
  /// The phase of each group's key.
  private(set) var phases: [Int: Phase] = [:]

  /// The command without an end, if any.
  var unfinished: String? { open.keys.min().map { "the group's command #\($0) has no end" } }

  mutating func restart() { self = GroupLedger() }

  mutating func began(
    _ number: UInt64,
    _ place: Int,
    canConfirm: Bool,
    accepted: [Int],
    rejected: Int
  ) {
    open[number] = Running(
      place: place,
      canConfirm: canConfirm,
      members: Dictionary(uniqueKeysWithValues: accepted.map { ($0, []) }),
      rejected: rejected
    )
    show(.accepted, number, place)
  }

  /// Records the event of a member as its requester gets it.
  mutating func emitted(_ event: CommandEvent, of number: UInt64) {
    let place = Int(event.key.rawValue)
    guard let last = open[number]?.members[place] else { return }
    if event.phase == .sent, !event.isFinal {
      open[number]?.members[place] = last + [.sending]
    } else {
      open[number]?.members[place] = last + [event.phase]
    }
  }

  /// Records an event of a group; returns the violated rule, if any.
  mutating func emitted(_ event: CommandEvent) -> String? {
    guard var command = open[event.number], Int(event.key.rawValue) == command.place else {
      return "the group's command #\(event.number) told \(event.phase) after its end"
    }
    guard !command.told.contains(event.phase) else { return "told \(event.phase) twice" }
    command.told.append(event.phase)
    open[event.number] = event.isFinal ? nil : command
    show(event.phase, event.number, command.place)
    guard event.isFinal else {
      let isEarly = command.members.values.contains { $0.isEmpty }
      return isEarly ? "told \(event.phase) before all members" : nil
    }
    guard command.areEnded else { return "ended before its members" }
    let due = Self.end(command)
    return event.phase == due ? nil : "ended \(event.phase), not \(due)"
  }

  private static func end(_ command: Running) -> Phase {
    let ends = command.ends + Array(repeating: Phase.rejected, count: command.rejected)
    let bad = ends.filter { ![.sent, .confirmed, .unchanged].contains($0) }
    let wasSent = command.members.values.contains { $0.contains(.sending) || $0.contains(.sent) }
    guard !bad.isEmpty else {
      return ends.allSatisfy { $0 == .unchanged }
        ? .unchanged : command.canConfirm ? .confirmed : .sent
    }
    if command.told.count == 1, !wasSent, ends.allSatisfy({ $0 == .rejected }) { return .rejected }
    if bad.contains(.failed) || bad.contains(.rejected) { return .failed }
    if bad.contains(.expired) { return .expired }
    return bad.contains(.cancelled) ? .cancelled : .superseded
  }

  private mutating func show(_ phase: Phase, _ number: UInt64, _ place: Int) {
    guard number >= newest[place] ?? 0 else { return }
    newest[place] = number
    phases[place] = phase
  }
}

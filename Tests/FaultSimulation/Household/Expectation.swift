// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
package import Values

/// What a person expects of each property, from the accepted changes and the rules of the contract.
///
/// It knows neither queues nor messages: the newest change of a property decides, a press decides
/// for the property that it moves, an implying value for the implied property, and a hand at the
/// device for what it touched. Where two of them meet undecided, nothing is expected.
package struct Expectation: Sendable {
  /// A state that a property must have at rest.
  package enum Want: Hashable, Sendable {
    case unknown
    case value(Value)
    /// Wherever it was when it was told to stop.
    case stopped
  }

  /// A change of one property.
  package struct Command: Hashable, Sendable {
    package var key: Int
    package var intent: UInt64

    package init(key: Int, intent: UInt64) {
      self.key = key
      self.intent = intent
    }
  }

  /// What became of an expectation.
  package enum Verdict: Hashable, Sendable {
    case asIntended
    /// It is as a hand at the device left it.
    case byHand
    /// The phase of the command says why the device is otherwise.
    case whyNot(Phase)
    /// Nothing was expected.
    case free
    /// The device failed in a way that no gateway can detect.
    case excused
    /// The device is otherwise, and nothing says why.
    case wrong(String)
    /// A command was given up for a hand that there was not.
    case inventedHand(String)
  }

  private enum Cause: Hashable { case nobody, hand, command(Command) }

  private struct Row {
    var want = Want.unknown
    var cause = Cause.nobody
    var isTouched = false
    var isExcused = false
    /// A message for it was not obeyed, but what the device reported may equal it by chance.
    var isUnheard = false
  }

  private struct End {
    var phase: Phase
    var reason: String?
    var isFinal: Bool
  }

  private let facts: [HouseholdFacts]
  private var rows: [Row]
  private var ends: [Command: End] = [:]

  package init(_ facts: [HouseholdFacts]) {
    self.facts = facts
    rows = Array(repeating: Row(), count: facts.count)
  }

  /// What is expected of a property.
  package subscript(key: Int) -> Want { rows[key].want }

  // MARK: - Changes

  /// Records values that one change asked for at one instant and that were accepted.
  package mutating func asked(_ parts: [(key: Int, value: Value)], by intent: UInt64) {
    let stated = Set(parts.map(\.key))
    for (key, value) in parts {
      let command = Command(key: key, intent: intent)
      // A momentary command may have failed at once.
      if ends[command] == nil { ends[command] = End(phase: .accepted, isFinal: false) }
      if facts[key].isAction {
        guard case .text(let word) = value, let move = facts[key].moves[word] else { continue }
        set(move.key, move.want, .command(command))
        continue
      }
      set(key, .value(value), .command(command))
      // Of two in one change, the one stated last wins.
      for other in facts.indices where isExcluded(other, by: key) { set(other, .unknown, .nobody) }
      if let implied = facts[key].implies, !stated.contains(implied) {
        let flag = HouseholdFacts.implied(by: value)
        set(implied, .value(.boolean(flag)), .command(command))
        forget(implying: implied, otherThan: .boolean(flag))
      }
    }
    // The stated value beats the implied one, and a new one every older value that implies
    // otherwise.
    for (key, value) in parts where !facts[key].isAction { forget(implying: key, otherThan: value) }
  }

  /// Records one accepted value.
  package mutating func asked(_ value: Value, of key: Int, by intent: UInt64) {
    asked([(key, value)], by: intent)
  }

  /// Records an event of a command.
  package mutating func phase(
    _ phase: Phase,
    of command: Command,
    reason: String?,
    isFinal: Bool
  ) {
    ends[command] = End(phase: phase, reason: reason, isFinal: isFinal)
  }

  /// Records that a command was lost with its process, which had not kept it.
  package mutating func lost(_ command: Command) {
    for key in rows.indices where rows[key].cause == .command(command) {
      set(key, .unknown, .nobody)
    }
  }

  /// Records that a command is back after a crash, in which a newer one was lost.
  package mutating func resumed(_ command: Command) {
    if case .command = rows[command.key].cause { return }
    set(command.key, .unknown, .command(command))
    ends[command] = End(phase: .accepted, isFinal: false)
  }

  // MARK: - At the device

  /// Records that something else than the gateway changed a property.
  package mutating func touched(_ key: Int, _ value: Value) {
    let related = related(to: key)
    let isOpen = ends.contains { !$0.value.isFinal && related.contains($0.key.key) }
    set(key, isOpen ? .unknown : .value(value), .hand)
    forget(implying: key, otherThan: value)
    // Its report may end what is in flight for the others.
    for other in related { rows[other].isTouched = true }
  }

  /// Records that the device has lost its power, and with it perhaps what it was doing.
  package mutating func disturbed(_ key: Int) { rows[key].isTouched = true }

  /// Records a failure of the device that a gateway cannot detect.
  package mutating func excuse(_ key: Int) { rows[key].isExcused = true }

  /// Records that the device has not obeyed a message for a property, and what that would imply.
  package mutating func unheard(_ key: Int) {
    rows[key].isUnheard = true
    if let implied = facts[key].implies { rows[implied].isUnheard = true }
  }

  /// Records that the device has obeyed a message for a property.
  package mutating func heard(_ key: Int) {
    rows[key].isUnheard = false
    if let implied = facts[key].implies { rows[implied].isUnheard = false }
  }

  /// Begins anew with the state of a property at rest: nothing may change it by itself.
  package mutating func rested(_ key: Int, at state: Value?) {
    rows[key] = Row()
    if let state { set(key, .value(state), .hand) }
  }

  /// Forgets what became of all commands.
  package mutating func forgetCommands() { ends = [:] }

  // MARK: - Queries

  /// Whether the change that decides about a property has no last phase yet.
  package func isUnresolved(_ key: Int) -> Bool {
    guard case .command(let command) = rows[key].cause else { return false }
    return ends[command].map { !$0.isFinal } ?? false
  }

  /// Whether any command of a property has no last phase yet, also one that decides nothing.
  package func hasOpenCommand(of key: Int) -> Bool {
    ends.contains { $0.key.key == key && !$0.value.isFinal }
  }

  /// Whether the device has failed in a way that no gateway can detect since the last rest.
  package func isExcused(_ key: Int) -> Bool { rows[key].isExcused }

  /// Whether a hand moved something of the device since the last rest.
  package func isTouched(_ key: Int) -> Bool { rows[key].isTouched }

  /// The phase of the command that decides about a property.
  package func phase(of key: Int) -> Phase? {
    command(of: key).flatMap { ends[$0]?.phase }
  }

  /// Whether a press decides about a property: where that leads is known, where it is on the way is
  /// not.
  package func isPressed(_ key: Int) -> Bool {
    command(of: key).map { facts[$0.key].isAction } ?? false
  }

  /// The command that decides about a property.
  package func command(of key: Int) -> Command? {
    if case .command(let command) = rows[key].cause { command } else { nil }
  }

  /// Judges the state of a property at rest; `isStopped`: it was told to stop, and nothing moved it
  /// since.
  package func verdict(_ key: Int, state: Value?, isStopped: Bool) -> Verdict {
    let row = rows[key]
    switch row.want {
    case .unknown: return .free
    case .stopped where isStopped: return .asIntended
    case .value(let value) where state.map({ facts[key].isSame($0, value) }) ?? false:
      return row.cause == .hand ? .byHand : .asIntended
    case .stopped, .value: break
    }
    if row.isExcused { return .excused }
    guard case .command(let command) = row.cause, let end = ends[command] else {
      return .wrong("lost what was set at the device")
    }
    switch end.phase {
    case .failed, .expired, .rejected, .cancelled: return .whyNot(end.phase)
    case .confirmed where row.isUnheard, .unchanged where row.isUnheard || row.isTouched:
      return .excused
    case .superseded where end.reason == "changed at the device":
      if row.isTouched { return .byHand }
      if row.isUnheard { return .excused }
      return .inventedHand("ended as changed at the device, which nobody touched")
    case .accepted, .sending, .sent, .confirmed, .unchanged, .superseded:
      let why = end.reason.map { " (\($0))" } ?? ""
      return .wrong("should be \(Self.text(row.want)), and its command is \(end.phase)\(why)")
    }
  }

  // MARK: - Rules

  private mutating func set(_ key: Int, _ want: Want, _ cause: Cause) {
    rows[key].want = want
    rows[key].cause = cause
  }

  /// A value ends older ones that imply something else.
  private mutating func forget(implying key: Int, otherThan value: Value) {
    for other in facts.indices where facts[other].implies == key {
      guard case .value(let older) = rows[other].want,
        facts[other].contradicts(older, key, value)
      else { continue }
      set(other, .unknown, .nobody)
    }
  }

  private func isExcluded(_ other: Int, by key: Int) -> Bool {
    facts[key].excludes.contains(other) || facts[other].excludes.contains(key)
  }

  /// The properties of the same device.
  private func related(to key: Int) -> [Int] {
    facts.indices.filter { facts[$0].device == facts[key].device }
  }

  private static func text(_ want: Want) -> String {
    switch want {
    case .unknown: "anything"
    case .value(let value): value.bareText
    case .stopped: "stopped"
    }
  }
}

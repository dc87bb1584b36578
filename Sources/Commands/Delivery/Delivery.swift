// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import Values

/// What one key's device has, and what becomes of the command that was sent to it.
///
/// A command is in flight until the broker has acknowledged it and, where the property confirms
/// commands, until the device shows its value. A device that has only accepted the value is
/// arriving. Meanwhile its reports may be interim; any other value means that someone changed it at
/// the device.
struct Delivery {
  /// What becomes of a command.
  enum Verdict {
    /// Nothing changes for anyone: it is still in flight, or had ended before.
    case none
    /// No event follows this one.
    case ended(Command, Phase, reason: String?)
    /// It is sent once more.
    case repeated(Command)
  }

  /// What a report shows.
  struct Report {
    /// Whether the value differs from the one reported before, or is the first.
    var isNew = false
    /// Whether someone changed the value at the device, as far as this key can tell.
    var isByHand = false
    var verdict = Verdict.none
  }

  /// The kind of reports that the key's state topics have brought.
  enum Reception: UInt8 {
    /// No report.
    case none
    /// No report either after a command that was not confirmed.
    case missed
    /// Reports, of which the newest could be read.
    case readable
    /// Reports, of which the newest could not be read.
    case unreadable

    /// Whether a report has come, readable or not.
    var isHeard: Bool {
      switch self {
      case .none, .missed: false
      case .readable, .unreadable: true
      }
    }
  }

  /// Why a command ended that a newer one replaces.
  static let newerValue = "newer value"
  /// Why a command ended when the device reported another value.
  static let changedByHand = "changed at the device"

  /// What the device reported last.
  private(set) var actual: Value?
  /// What was sent last where nothing confirms it; forgotten with the next report.
  private(set) var lastSent: Value?
  /// The command that was handed to MQTT, until it ends.
  private(set) var inFlight: InFlightCommand?
  /// What the device has accepted and may still be moving to; `nil` while a command is in flight.
  private(set) var arriving: Value?
  /// What a command of another key makes the device take, until it reports that, or something else
  /// once that command has ended.
  private(set) var implied: Value?
  private(set) var transition = Transition()
  private(set) var reception = Reception.none

  /// What the device will have if nothing else happens, as far as that is known.
  var expected: Value? {
    if let inFlight, !inFlight.isEnded { return inFlight.command.value }
    return implied ?? arriving ?? lastSent ?? actual
  }

  /// Whether the broker owes an acknowledgement.
  var isSending: Bool { inFlight?.stage == .sending }

  /// Whether the device owes a confirmation.
  var awaitsConfirmation: Bool { inFlight?.stage == .sent }

  /// Whether the device has `value` and is not moving away from it.
  func shows(_ value: Value, _ property: borrowing Property) -> Bool {
    guard let actual, inFlight == nil, implied == nil, !transition.isOpen else { return false }
    return property.isSameOnWire(actual, value)
  }

  /// Shows the value that a group's members have, or that another process says; nothing is in flight.
  mutating func show(_ value: Value?) {
    actual = value
    reception = value == nil ? .none : .readable
  }

  // MARK: - Sending

  /// Puts a command in flight.
  ///
  /// - Returns: The command that it replaces, which was sent and not confirmed.
  mutating func send(_ command: InFlightCommand) -> Command? {
    let replaced = inFlight?.command
    if let replaced { transition.pass(replaced.value) }
    if let arriving = arriving.take() { transition.pass(arriving) }
    transition.begin(from: actual)
    inFlight = command
    implied = nil
    return replaced
  }

  /// A command of another key was sent that makes the device take `value`.
  mutating func imply(_ value: Value) { implied = value }

  /// That command failed.
  mutating func endImplication() { implied = nil }

  /// A command has left that must not be followed by another attempt of the one in flight.
  mutating func overtake() { inFlight?.isOvertaken = true }

  /// Ends what is in flight or arriving, whatever the device will show of it.
  ///
  /// A command that the broker has not acknowledged stays in flight, silently, until it has.
  mutating func abandon(as phase: Phase, reason: String?) -> Verdict {
    if let arriving = arriving.take() { transition.pass(arriving) }
    guard let flight = inFlight, !flight.isEnded else { return .none }
    switch flight.stage {
    case .sending: inFlight?.isEnded = true
    case .sent: inFlight = nil
    }
    transition.pass(flight.command.value)
    return .ended(flight.command, phase, reason: reason)
  }

  /// Records that a command, which was to be repeated, ended unconfirmed.
  mutating func abandonRepetition(of value: Value) { transition.pass(value) }

  // MARK: - The broker

  /// The broker acknowledged the command.
  ///
  /// `confirms` states whether the device confirms commands, `isAction` whether the value is a
  /// momentary command, which leaves no state behind.
  mutating func acknowledge(confirms: Bool, isAction: Bool) -> Verdict {
    guard let flight = inFlight else { return .none }
    if flight.isEnded {
      inFlight = nil
    } else if !confirms {
      inFlight = nil
      if !isAction { lastSent = flight.command.value }
    } else if flight.isShown {
      return confirm(isShown: true)
    } else if let refusal = flight.refusal {
      return fail(refusal)
    } else if flight.isAccepted {
      return confirm(isShown: false)
    } else {
      inFlight?.stage = .sent
    }
    return .none
  }

  /// Ends the command in flight as failed.
  mutating func fail(_ reason: String) -> Verdict { end(as: .failed, reason: reason) }

  /// Ends the command in flight because a newer one waits.
  mutating func supersede() -> Verdict { end(as: .superseded, reason: Self.newerValue) }

  /// Takes the command out of flight for another attempt.
  ///
  /// `unconfirmed` states that the device did not show the value in time.
  mutating func retry(unconfirmed: Bool) -> Verdict {
    guard let flight = inFlight.take(), !flight.isEnded else { return .none }
    return .repeated(flight.command.repeated(unconfirmed: unconfirmed))
  }

  private mutating func end(as phase: Phase, reason: String) -> Verdict {
    guard let flight = inFlight.take(), !flight.isEnded else { return .none }
    transition.pass(flight.command.value)
    return .ended(flight.command, phase, reason: reason)
  }

  /// Ends the command in flight as confirmed; without `isShown` the device may be moving there.
  private mutating func confirm(isShown: Bool) -> Verdict {
    guard let flight = inFlight.take() else { return .none }
    if isShown { transition.end() } else { arriving = flight.command.value }
    return .ended(flight.command, .confirmed, reason: nil)
  }

  // MARK: - The device

  /// Takes a report of the device: `value`, which is `wire` on the wire.
  ///
  /// `repetition` is the command that waits to be repeated, if one does: the attempt before may
  /// have reached the device. The verdict is about that one then. `isImplied` states whether a command
  /// of another key is on its way that implies a value of this one.
  mutating func report(
    _ value: Value,
    _ wire: JSONValue,
    repetition: Command?,
    isImplied: Bool = false,
    _ property: borrowing Property
  ) -> Report {
    var report = Report(isNew: actual != value || !reception.isHeard)
    reception = .readable
    actual = value
    lastSent = nil
    if let implied, !isImplied || property.isSameOnWire(implied, value) { self.implied = nil }
    if let repetition {
      resolve(repetition: repetition, value, wire, property, &report)
    } else if inFlight != nil {
      resolveInFlight(value, wire, property, &report)
    } else {
      resolveArriving(value, wire, property, &report)
    }
    return report
  }

  /// Takes a report without a value of the property.
  mutating func reportWithoutValue(isReadable: Bool) {
    reception = isReadable ? .readable : .unreadable
  }

  /// Forgets that the newest report could not be read, and unless `keepsHeard` that there was any.
  mutating func forgetReception(keepsHeard: Bool) {
    if !keepsHeard {
      reception = .none
    } else if reception == .unreadable {
      reception = .readable
    }
  }

  /// Records that the confirmation of a command is overdue.
  mutating func miss() {
    if reception == .none { reception = .missed }
  }

  private mutating func resolve(
    repetition: Command,
    _ value: Value,
    _ wire: JSONValue,
    _ property: borrowing Property,
    _ report: inout Report
  ) {
    if property.isShown(repetition.value, by: wire) {
      report.verdict = .ended(repetition, .confirmed, reason: nil)
    } else if !transition.includes(value, to: repetition.value, of: property) {
      report.verdict = .ended(repetition, .superseded, reason: Self.changedByHand)
      report.isByHand = true
    } else {
      return
    }
    transition.end()
  }

  private mutating func resolveInFlight(
    _ value: Value,
    _ wire: JSONValue,
    _ property: borrowing Property,
    _ report: inout Report
  ) {
    guard let flight = inFlight, !flight.isEnded else { return }
    if property.isShown(flight.command.value, by: wire) {
      switch flight.stage {
      case .sending: inFlight?.isShown = true
      case .sent: report.verdict = confirm(isShown: true)
      }
    } else if transition.includes(value, to: flight.command.value, of: property) {
      inFlight?.isShown = false  // It may have shown the value, and no longer does.
    } else {
      report.verdict = abandon(as: .superseded, reason: Self.changedByHand)
      report.isByHand = true
      transition.end()
    }
  }

  private mutating func resolveArriving(
    _ value: Value,
    _ wire: JSONValue,
    _ property: borrowing Property,
    _ report: inout Report
  ) {
    if let arriving, !property.isShown(arriving, by: wire) {
      guard !transition.includes(value, to: arriving, of: property) else { return }
      report.isByHand = true
    } else {
      report.isByHand = arriving == nil
    }
    arriving = nil
    transition.end()
  }

  /// The device acknowledged a value by `wire`; its state may follow.
  mutating func accept(_ wire: JSONValue, _ property: borrowing Property) -> Verdict {
    guard let flight = inFlight, !flight.isEnded,
      property.isShown(flight.command.value, by: wire)
    else { return .none }
    return accepted()
  }

  /// Whether a reply to this message is about the command in flight.
  func awaitsReply(to message: Int64) -> Bool {
    guard let inFlight, !inFlight.isEnded else { return false }
    return inFlight.message == message
  }

  /// The device replied to the command in flight; `problem` is why it refused.
  mutating func reply(problem: String?) -> Verdict {
    guard let problem else { return accepted() }
    let refusal = "the device refused: \(problem)"
    guard isSending else { return fail(refusal) }
    inFlight?.refusal = refusal
    return .none
  }

  private mutating func accepted() -> Verdict {
    guard isSending else { return confirm(isShown: false) }
    inFlight?.isAccepted = true
    return .none
  }

  // MARK: - Other definitions

  /// Continues with another definition of the property: forgets the values that it does not have,
  /// and all of a removed one.
  ///
  /// A command in flight ends if its value is one of them, or if no device confirms it any more.
  mutating func adopt(_ entry: Registry.Entry, confirms: Bool) -> Verdict {
    if let value = actual, entry.isRetired || !entry.definition.property.canReport(value) {
      actual = nil
    }
    if let value = lastSent, entry.reasonToEnd(value) != nil { lastSent = nil }
    if let value = arriving, entry.reasonToEnd(value) != nil { arriving = nil }
    guard let flight = inFlight else { return .none }
    let reason = entry.reasonToEnd(flight.command.value)
    let isUnprovable = !confirms && flight.stage == .sent
    guard reason != nil || isUnprovable else { return .none }
    let phase = entry.isRetired ? Phase.cancelled : .superseded
    return abandon(as: phase, reason: reason ?? Registry.Entry.changedReason)
  }
}

extension Property {
  /// Whether a device may report the value, which need not be one that can be requested.
  func canReport(_ value: Value) -> Bool { self.value(fromWire: wireValue(of: value)) == value }

  /// Whether the value can be requested.
  func allows(_ value: Value) -> Bool { (try? self.value(from: value.json)) == value }
}

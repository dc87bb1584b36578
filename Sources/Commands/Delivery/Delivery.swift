// Settle
// SPDX-License-Identifier: Apache-2.0

package import Devices
import JSON
import LastOut
package import Values

/// What one key's device has, and what becomes of the command that was sent to it.
///
/// A command is in flight until the broker has acknowledged it and, where the property confirms
/// commands, until the device shows or accepts its value. Meanwhile, and for as long as the device
/// travels, its reports may be interim; any other value means that someone changed it at the
/// device.
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
    var isHeard: Bool { self == .readable || self == .unreadable }
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
  /// What a command of another key makes the device take, until it reports that, or something else
  /// once that command has ended.
  private(set) var implied: Value?
  /// The time until the key is at rest.
  private(set) var travel = Travel()
  /// Until when the device may move because of an urgent command that has ended those of this key,
  /// unless it reports its way.
  private var drivenUntil: Moment?
  private(set) var reception = Reception.none

  /// What the device will have if nothing else happens, as far as that is known.
  var expected: Value? {
    if let inFlight, !inFlight.isEnded { return inFlight.command.value }
    return travel.target ?? lastSent ?? actual
  }

  /// The value that the device has confirmed, or reported of its own accord; `nil` while it owes
  /// something newer.
  var confirmedTarget: Value? {
    inFlight == nil && lastSent == nil ? travel.target ?? actual : nil
  }

  /// Whether the broker owes an acknowledgement.
  var isSending: Bool { inFlight?.stage == .sending }

  /// Whether the device owes a confirmation.
  var awaitsConfirmation: Bool { inFlight?.stage == .sent }

  /// When the key is at rest; `nil` while a command is in flight, or that depends on a report.
  var restsAt: Moment? { inFlight == nil ? travel.deadline : nil }

  /// Whether the device has `value` and is not moving away from it, or is moving there.
  func shows(_ value: Value, _ property: borrowing Property) -> Bool {
    guard inFlight == nil, implied == nil else { return false }
    if travel.isOpen { return travel.leads(to: value, property) }
    guard let actual else { return false }
    return property.isSameOnWire(actual, value)
  }

  /// Shows the value that a group's members have, or that another process says; nothing is in
  /// flight.
  mutating func show(_ value: Value?) {
    actual = value
    reception = value == nil ? .none : .readable
  }

  // MARK: - Sending

  /// Puts a command in flight.
  ///
  /// - Returns: The command that it replaces, which was sent and not confirmed.
  mutating func send(_ command: InFlightCommand, at now: Moment) -> Command? {
    let replaced = inFlight?.command
    if let replaced { travel.pass(replaced.value) }
    travel.begin(command, from: actual, at: now)
    inFlight = command
    implied = nil
    return replaced
  }

  /// A command of another key was sent that makes the device take `value`.
  mutating func imply(_ value: Value) { implied = value }

  /// That command failed.
  mutating func endImplication() { implied = nil }

  /// An urgent command has left that ends those of this key: the device may move, nobody knows
  /// where.
  mutating func drive(at now: Moment) { drivenUntil = now.advanced(by: Travel.limit) }

  /// A command has left that must not be followed by another attempt of the one in flight.
  mutating func overtake() { inFlight?.isOvertaken = true }

  /// Ends what is in flight and the way to what was confirmed, whatever the device will show of it.
  ///
  /// A command that the broker has not acknowledged stays in flight, silently, until it has.
  mutating func abandon(as phase: Phase, reason: String?) -> Verdict {
    travel.stop()
    guard let flight = inFlight, !flight.isEnded else { return .none }
    switch flight.stage {
    case .sending: inFlight?.isEnded = true
    case .sent: inFlight = nil
    }
    travel.pass(flight.command.value)
    return .ended(flight.command, phase, reason: reason)
  }

  /// Records that a command, which was to be repeated, ended unconfirmed.
  mutating func abandonRepetition(of value: Value) { travel.pass(value) }

  // MARK: - The broker

  /// The broker acknowledged the command.
  ///
  /// `confirms` states whether the device confirms commands, `isAction` whether the value is a
  /// momentary command, which leaves no state behind.
  mutating func acknowledge(confirms: Bool, isAction: Bool, at now: Moment) -> Verdict {
    guard let flight = inFlight else { return .none }
    if flight.isEnded {
      inFlight = nil
      return .none
    }
    drivenUntil = nil
    if !confirms {
      inFlight = nil
      if !isAction { finish(flight, at: now) }
    } else if flight.isShown {
      return confirm(at: now)
    } else if let refusal = flight.refusal {
      return fail(refusal)
    } else if flight.isAccepted {
      return confirmAccepted()
    } else {
      inFlight?.stage = .sent
    }
    return .none
  }

  /// Records the value of a command that nothing confirms.
  private mutating func finish(_ flight: InFlightCommand, at now: Moment) {
    if !travel.isTimed {
      lastSent = flight.command.value
    } else if flight.isShown {
      travel.confirm(flight.command.value, at: now)
    } else {
      travel.accept(flight.command.value, isConfirmed: false)
    }
  }

  /// Ends the command in flight as failed.
  mutating func fail(_ reason: String) -> Verdict {
    guard let flight = inFlight.take(), !flight.isEnded else { return .none }
    travel.fail(flight.command.value)
    return .ended(flight.command, .failed, reason: reason)
  }

  /// Ends the command in flight because a newer one waits.
  mutating func supersede() -> Verdict {
    guard let flight = inFlight.take(), !flight.isEnded else { return .none }
    travel.pass(flight.command.value)
    return .ended(flight.command, .superseded, reason: Self.newerValue)
  }

  /// Takes the command out of flight for another attempt.
  ///
  /// `unconfirmed` states that the device did not show the value in time.
  mutating func retry(unconfirmed: Bool) -> Verdict {
    guard let flight = inFlight.take(), !flight.isEnded else { return .none }
    return .repeated(flight.command.repeated(unconfirmed: unconfirmed))
  }

  /// Ends the command in flight as confirmed: the device shows its value.
  private mutating func confirm(at now: Moment) -> Verdict {
    guard let flight = inFlight.take() else { return .none }
    travel.confirm(flight.command.value, at: now)
    return .ended(flight.command, .confirmed, reason: nil)
  }

  /// Ends the command in flight as confirmed: the device may still be moving to its value.
  private mutating func confirmAccepted() -> Verdict {
    guard let flight = inFlight.take() else { return .none }
    travel.accept(flight.command.value, isConfirmed: true)
    return .ended(flight.command, .confirmed, reason: nil)
  }

  // MARK: - The device

  /// Takes a report of the device: `value`, which is `wire` on the wire.
  ///
  /// `repetition` is the command that waits to be repeated, if one does: the attempt before may
  /// have reached the device. The verdict is about that one then. `isImplied` states whether a
  /// command of another key is in flight that implies a value of this one, `movesActualOnly` that
  /// the report says nothing about what anyone wants, whatever its value.
  mutating func report(
    _ value: Value,
    _ wire: JSONValue,
    repetition: Command?,
    isImplied: Bool = false,
    movesActualOnly: Bool = false,
    _ property: borrowing Property,
    at now: Moment
  ) -> Report {
    var report = Report(isNew: actual != value || !reception.isHeard)
    let before = actual
    let target = movesActualOnly ? expected : nil
    let isDriven = drivenUntil.map { now < $0 } ?? false
    if isDriven {
      drivenUntil = now.advanced(by: property.confirm?.within ?? Confirmation().within)
    }
    reception = .readable
    actual = value
    lastSent = nil
    if let implied, !isImplied || property.isSameOnWire(implied, value) { self.implied = nil }
    if let awaited = repetition ?? inFlight?.command {
      if repetition == nil, inFlight?.isEnded == true { return report }
      // What moves the device says nothing about a command that it has not heard yet.
      let isUnheard = isDriven && (repetition != nil || isSending)
      let isInterim = movesActualOnly || isUnheard || travel.includes(value, of: property)
      if property.isShown(awaited.value, by: wire), !isUnheard || repetition == nil {
        report.verdict = show(awaited, isRepeated: repetition != nil, at: now)
      } else if isInterim {
        // It may have shown the value, and no longer does.
        if !travel.isTimed { inFlight?.isShown = false }
        travel.move(
          from: before,
          to: value,
          toward: awaited.value,
          isAtTarget: false,
          isIdle: false,
          at: now
        )
      } else {
        report.isByHand = true
        drivenUntil = nil
        report.verdict = .ended(awaited, .superseded, reason: Self.changedByHand)
        if repetition == nil { _ = abandon(as: .superseded, reason: nil) }
        travel.end()
      }
    } else if movesActualOnly {
      travel.hold(target)
    } else {
      report.isByHand = resolveIdle(value, wire, before: before, property, at: now)
    }
    return report
  }

  /// The device shows the value of a command.
  private mutating func show(_ command: Command, isRepeated: Bool, at now: Moment) -> Verdict {
    if isRepeated {
      travel.confirm(command.value, at: now)
      return .ended(command, .confirmed, reason: nil)
    }
    if isSending {
      inFlight?.isShown = true
      return .none
    }
    return confirm(at: now)
  }

  /// Takes a report while nothing is in flight.
  ///
  /// - Returns: Whether someone changed the value at the device.
  private mutating func resolveIdle(
    _ value: Value,
    _ wire: JSONValue,
    before: Value?,
    _ property: borrowing Property,
    at now: Moment
  ) -> Bool {
    var isAtTarget = false
    if let target = travel.target { isAtTarget = property.isShown(target, by: wire) }
    guard travel.continues(with: value, isAtTarget: isAtTarget, of: property) else {
      travel.end()
      return !isAtTarget
    }
    travel.move(
      from: before,
      to: value,
      toward: travel.target ?? travel.passed,
      isAtTarget: isAtTarget,
      isIdle: true,
      at: now
    )
    return false
  }

  /// The device has lost its power, or is gone: it moves no further, and its next report says where it
  /// stands.
  mutating func stand() {
    if inFlight == nil { travel.stop() }
  }

  /// The key is at rest: what the device has is the target, unless the key `keepsTarget`.
  mutating func rest(keepsTarget: Bool) {
    let target = travel.target
    travel.end()
    if keepsTarget { travel.hold(target) }
  }

  /// The device reports what the key implies again, or has what it is asked for already: what it
  /// reports of the key counts.
  mutating func endHold() {
    if inFlight == nil, !travel.isOpen { travel.end() }
  }

  /// Lets the time until the key is at rest go on, because a command waits to be repeated.
  mutating func postponeRest(at now: Moment) { travel.postpone(at: now) }

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
    guard isSending else { return confirmAccepted() }
    inFlight?.isAccepted = true
    return .none
  }

  // MARK: - Other definitions

  /// Continues with another definition of the property: forgets the values that it does not have,
  /// and all of a removed one.
  ///
  /// A command in flight ends if its value is one of them, or if no device confirms it any more.
  /// The time of a key that does not travel any more ends at once.
  mutating func adopt(_ entry: Registry.Entry, confirms: Bool, travels: Bool) -> Verdict {
    if let value = actual, entry.isRetired || !entry.definition.property.canReport(value) {
      actual = nil
      travel.stop()
    }
    if let value = lastSent, entry.reasonToEnd(value) != nil { lastSent = nil }
    if let value = travel.target, entry.reasonToEnd(value) != nil { travel.stop() }
    if travel.isTimed, !travels { travel.stop() }
    if !travels { drivenUntil = nil }
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
  package func allows(_ value: Value) -> Bool { (try? self.value(from: value.json)) == value }
}

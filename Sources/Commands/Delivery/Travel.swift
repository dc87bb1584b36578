// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Values

/// The time from the sending of a command until its key is at rest: what its device may report
/// meanwhile without anyone touching it, and the value that it will have.
///
/// Devices repeat what was asked of them, then report their way. So a confirmation does not end the
/// time of a key that travels, which is one that ``InFlightCommand/restTime`` is given for: a
/// number or a color. That of any other key ends with the first report that is not interim.
struct Travel {
  /// The longest time until a key is at rest, from the sending of its last command.
  static let limit = Duration.seconds(300)

  /// The value before the first command; `nil` while that is unknown.
  private var start: Value?
  /// The value of the last command that ended unconfirmed.
  private(set) var passed: Value?
  /// The least and the greatest of all numbers that were reported or sent.
  private var reach: ClosedRange<Double>?
  /// The last confirmed value, or the one that the key keeps whatever its device reports.
  private(set) var target: Value?
  /// How long after its last progress the device is at rest; `nil` for a key that does not travel.
  private var restTime: Duration?
  /// When the key is at rest unless its device makes progress; `nil` before the first progress.
  private var restsAt: Moment?
  /// When the key is at rest in any case; `nil` while the time has not begun.
  private var endsAt: Moment?
  /// Whether a command was sent since it was last certain where the device stands.
  private(set) var isOpen = false
  /// Whether the next report says where the device stands, whatever it is.
  private var isStopped = false
  /// Whether ``target`` is confirmed, and the value of the last command.
  private var isTargetNewest = false

  /// Whether the key travels.
  var isTimed: Bool { restTime != nil }

  /// When the key is at rest, if nothing of it is in flight; `nil` while that depends on a report.
  var deadline: Moment? {
    restsAt == nil && target == nil ? nil : Moment.earlier(restsAt, endsAt)
  }

  /// Whether the device reports that it moves to `value`, or has arrived there.
  func leads(to value: Value, _ property: borrowing Property) -> Bool {
    guard isTargetNewest, restsAt != nil, let target else { return false }
    return property.isSameOnWire(target, value)
  }

  // MARK: - Commands

  /// A command is sent to a device that has reported `actual`; an open time continues.
  mutating func begin(_ command: InFlightCommand, from actual: Value?, at now: Moment) {
    if !isOpen {
      isOpen = true
      start = actual
      widen(to: actual)
    }
    isStopped = false
    isTargetNewest = false
    restTime = command.restTime
    restsAt = nil
    endsAt = nil
    if isTimed {
      endsAt = now.advanced(by: Self.limit)
      widen(to: command.command.value)
    } else if let target = target.take() {
      pass(target)
    }
  }

  /// Adds the value of a command that ended unconfirmed: the device may report it nevertheless.
  mutating func pass(_ value: Value) {
    passed = value
    widen(to: value)
  }

  /// A command failed: the device may do anything, and the key shows what it reports.
  mutating func fail(_ value: Value) {
    target = nil
    pass(value)
  }

  /// The device shows the value of the last command; a key that does not travel is at rest.
  mutating func confirm(_ value: Value, at now: Moment) {
    guard isTimed else { return end() }
    target = value
    isTargetNewest = true
    progress(at: now)
  }

  /// The value of the last command was acknowledged, by the device if it `isConfirmed`: what
  /// happens to it will be reported, and the time begins with that.
  mutating func accept(_ value: Value, isConfirmed: Bool) {
    target = value
    isTargetNewest = isConfirmed
    restsAt = nil
    endsAt = nil
  }

  /// Ends the time at once, although the device may still move: the next report says where it
  /// stands.
  mutating func stop() {
    if let target = target.take() { pass(target) }
    isStopped = true
    restsAt = nil
    endsAt = nil
  }

  /// It is certain where the device stands.
  mutating func end() { self = Travel() }

  /// Lets the time go on while the command waits to be repeated.
  mutating func postpone(at now: Moment) {
    restsAt = nil
    endsAt = now.advanced(by: Self.limit)
  }

  /// Keeps `value` as the target of the key, whatever its device reports.
  mutating func hold(_ value: Value?) { target = target ?? value }

  // MARK: - Reports

  /// Whether a report of `value` is interim while a command is in flight or waits to be repeated.
  func includes(_ value: Value, of property: borrowing Property) -> Bool {
    guard let start else { return true }
    if property.isSameOnWire(start, value) { return true }
    if let passed, property.isSameOnWire(passed, value) { return true }
    switch value {
    case .number(let number): return reach?.contains(number) ?? false
    case .color: return isTimed
    case .boolean, .text: return false
    }
  }

  /// Whether a report of `value` is interim while nothing is in flight.
  func continues(
    with value: Value,
    isAtTarget: Bool,
    of property: borrowing Property
  ) -> Bool {
    guard isOpen, !isStopped else { return false }
    if isTimed { return isAtTarget || includes(value, of: property) }
    return target != nil && !isAtTarget && includes(value, of: property)
  }

  /// Records an interim report of `value` after one of `previous`.
  ///
  /// `aim` is the value that the device moves to, as far as that is known. Without `isIdle`, which
  /// states that nothing is in flight and nothing waits to be repeated, only progress counts.
  mutating func move(
    from previous: Value?,
    to value: Value,
    toward aim: Value?,
    isAtTarget: Bool,
    isIdle: Bool,
    at now: Moment
  ) {
    guard isTimed else { return }
    if start == nil, !isAtTarget { start = value }
    widen(to: value)
    if isIdle, isAtTarget, !isTargetNewest {
      isTargetNewest = true
      progress(at: now)
    } else if isIdle, restsAt == nil {
      endsAt = nil
      progress(at: now)
    } else if Self.isNearer(value, than: previous, to: aim) {
      progress(at: now)
    }
  }

  private mutating func progress(at now: Moment) {
    guard let restTime else { return }
    restsAt = now.advanced(by: restTime)
    endsAt = endsAt ?? now.advanced(by: Self.limit)
  }

  private static func isNearer(_ value: Value, than previous: Value?, to aim: Value?) -> Bool {
    guard let aim, let left = value.distance(to: aim) else { return false }
    guard let known = previous?.distance(to: aim) else { return true }
    return left < known
  }

  private mutating func widen(to value: Value?) {
    guard case .number(let number)? = value else { return }
    guard let known = reach else {
      reach = number...number
      return
    }
    reach = min(known.lowerBound, number)...max(known.upperBound, number)
  }
}

extension Value {
  /// How far two numbers or two colors are apart, in units that mean nothing; `nil` for other
  /// values.
  fileprivate func distance(to other: Value) -> Double? {
    if case .number(let one) = self, case .number(let two) = other { return (one - two).magnitude }
    guard case .color(let one) = self, case .color(let two) = other else { return nil }
    let (left, right) = (one.rgb, two.rgb)
    let red = Double(left.red) - Double(right.red)
    let green = Double(left.green) - Double(right.green)
    let blue = Double(left.blue) - Double(right.blue)
    return red * red + green * green + blue * blue
  }
}

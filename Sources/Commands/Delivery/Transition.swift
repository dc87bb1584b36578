// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Values

/// The values a device may report while it moves to a command's value, without anyone touching it.
///
/// These are the value before the command, values of earlier commands that were never confirmed,
/// and numbers between all of them.
struct Transition {
  /// The value before the first unconfirmed command; `nil` while that is unknown.
  private var start: Value?
  /// The value of the last unconfirmed command before the current one.
  private var passed: Value?
  /// The least and the greatest of all numbers among these values.
  private var reach: ClosedRange<Double>?
  /// Whether a command was sent since it was last certain where the device stands.
  private(set) var isOpen = false

  /// Opens the transition from where the device stands; an open one continues.
  mutating func begin(from actual: Value?) {
    guard !isOpen else { return }
    isOpen = true
    start = actual
    widen(to: actual)
  }

  /// Adds the value of a command that ended unconfirmed: the device may report it nevertheless.
  mutating func pass(_ value: Value) {
    passed = value
    widen(to: value)
  }

  /// Closes the transition: it is certain again where the device stands.
  mutating func end() { self = Transition() }

  /// Whether a report of `value` is interim on the way to `target`.
  func includes(_ value: Value, to target: Value, of property: borrowing Property) -> Bool {
    guard let start else { return true }
    if property.isSameOnWire(start, value) { return true }
    if let passed, property.isSameOnWire(passed, value) { return true }
    guard case .number(let number) = value, case .number(let end) = target, let reach else {
      return false
    }
    return min(reach.lowerBound, end) <= number && number <= max(reach.upperBound, end)
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

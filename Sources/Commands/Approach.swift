// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices

/// What a device may report while it moves to a command's value, without anybody's hand at it: the
/// value before, values of earlier commands that it never confirmed, and what lies between.
struct Approach {
  /// The value before the first unconfirmed command; `nil` while that is not known.
  private var start: Value?
  /// The last of the earlier commands' values.
  private var passed: Value?
  /// Of numbers, the least and the greatest of all these.
  private var reach: ClosedRange<Double>?
  private(set) var isOpen = false

  /// A command leaves; the first since the last certainty notes where the device stood.
  mutating func begin(from actual: Value?) {
    guard !isOpen else { return }
    isOpen = true
    start = actual
    widen(by: actual)
  }

  /// A command was replaced or ended before it was confirmed: its value may show up nevertheless.
  mutating func pass(_ value: Value) {
    passed = value
    widen(by: value)
  }

  /// It is certain again where the device stands.
  mutating func end() { self = Approach() }

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

  private mutating func widen(by value: Value?) {
    guard case .number(let number)? = value else { return }
    guard let known = reach else {
      reach = number...number
      return
    }
    reach = min(known.lowerBound, number)...max(known.upperBound, number)
  }
}

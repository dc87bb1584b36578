// Settle
// SPDX-License-Identifier: Apache-2.0

import Values

/// A fast reader for whole numbers that are in a property's range and on its step.
///
/// Most payloads are such numbers; reading their digits suffices.
struct WholeGrid: Sendable {
  /// A `Double` holds this many digits exactly; ``NumberText`` reads longer numbers.
  private static let mostDigits = 15

  private let lowest: Int64
  private let highest: Int64
  private let origin: Int64
  private let step: Int64

  /// `nil` unless the range starts at a whole number and the step is whole or a fraction like 1/10.
  init?(_ rule: NumberRule) {
    let most = 1e15
    let origin = rule.range?.lowerBound ?? 0
    guard let begin = Int64(exactly: origin), origin.magnitude <= most else { return nil }
    self.origin = begin
    lowest = rule.range == nil ? Int64(-most) : begin
    highest = Int64(min(rule.range?.upperBound ?? most, most).rounded(.down))
    guard let step = rule.step, step > 0 else {
      self.step = 1
      return
    }
    if let whole = Int64(exactly: step) {
      self.step = whole
    } else {
      // Steps such as 0.5, 0.2 and 0.1 reach every whole number.
      let parts = (1 / step).rounded()
      guard parts <= 1000, (parts * step - 1).magnitude < 1e-12 else { return nil }
      self.step = 1
    }
  }

  /// Reads plain digits; `nil` for anything that the general reader must handle.
  func value(of bytes: Span<UInt8>) -> Double? {
    guard !bytes.isEmpty else { return nil }
    let isNegative = bytes[0] == UInt8(ascii: "-")
    let first = isNegative ? 1 : 0
    guard bytes.count > first, bytes.count - first <= Self.mostDigits else { return nil }
    var number: Int64 = 0
    for index in first..<bytes.count {
      let digit = bytes[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      number = number &* 10 &+ Int64(digit)
    }
    if isNegative { number = -number }
    guard number >= lowest, number <= highest else { return nil }
    guard step == 1 || (number - origin) % step == 0 else { return nil }
    return Double(number)
  }
}

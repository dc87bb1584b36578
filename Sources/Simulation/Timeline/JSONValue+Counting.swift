// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON

extension JSONValue {
  /// The number plus `amount`; `nil` if this is not a number.
  ///
  /// Whole numbers stay whole. Sums are rounded to nine decimals, so that steps of a tenth show
  /// tenths.
  func stepped(by amount: Double) -> JSONValue? {
    switch self {
    case .integer(let number):
      if let whole = Int64(exactly: amount) {
        let (sum, overflow) = number.addingReportingOverflow(whole)
        if !overflow { return .integer(sum) }
      }
      return .number(Self.rounded(Double(number) + amount))
    case .number(let number): return .number(Self.rounded(number + amount))
    case .null, .boolean, .string, .array, .object: return nil
    }
  }

  /// The opposite of `true`, `false`, `on` or `off`, in the same case; `nil` for any other value.
  var toggled: JSONValue? {
    switch self {
    case .boolean(let flag): .boolean(!flag)
    case .string("on"): "off"
    case .string("off"): "on"
    case .string("ON"): "OFF"
    case .string("OFF"): "ON"
    case .null, .integer, .number, .string, .array, .object: nil
    }
  }

  private static func rounded(_ number: Double) -> Double {
    abs(number) < 1e6 ? (number * 1e9).rounded() / 1e9 : number
  }
}

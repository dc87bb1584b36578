// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON

extension JSONValue {
  /// The number `amount` further on; `nil` if this is no number.
  ///
  /// Whole numbers stay whole, and sums keep nine digits after the point, so that counting in tenths
  /// shows tenths.
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

  /// The other of two: `true` and `false`, or `on` and `off` in the case they are written in.
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

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// Rates as text: `10/s`, `30/m`, `5/h`.
package enum RateText {
  /// The accepted forms, for error messages.
  package static let forms = "a rate such as 10/s or 30/m"

  /// Reads a rate per second; `nil` for a malformed text, zero, or more than 100,000 a second.
  package static func parse(_ text: String) -> Double? {
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, let amount = NumberText.parse(parts[0]), amount > 0 else { return nil }
    let seconds: Double
    switch parts[1] {
    case "s": seconds = 1
    case "m": seconds = 60
    case "h": seconds = 3600
    default: return nil
    }
    return amount / seconds <= 100_000 ? amount / seconds : nil
  }

  /// The rate that a malformed text most likely means.
  package static func suggestion(for text: String) -> String? {
    let compact = text.lowercased().filter { $0 != " " }
    let number = compact.prefix { $0.isNumber || $0 == "." }
    guard let amount = NumberText.parse(number), amount > 0 else { return nil }
    let unit = compact[number.endIndex...].drop { $0 == "/" }
    switch unit {
    case "", "s", "sec", "second", "ps", "hz": return "\(number)/s"
    case "m", "min", "minute": return "\(number)/m"
    case "h", "hour": return "\(number)/h"
    default: return nil
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Durations as people write them: `300ms`, `2s`, `5m`, `1h`, `0`.
///
/// The same words serve command lines, the request grammar and configuration files.
package enum DurationText {
  /// The units, longest first, so that `ms` is not read as `m`.
  private static let units: [(name: String, milliseconds: Double)] = [
    ("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000),
  ]

  /// The longest duration that is taken: ten years.
  package static let longest: Duration = .seconds(10 * 365 * 24 * 3600)

  /// What is allowed, for messages.
  package static let allowed = #"a duration such as "300ms", "2s", "5m" or "1h""#

  /// The duration that `text` says, or why it says none.
  ///
  /// Fractions are taken (`1.5s`), signs and spaces are not; the smallest step is a microsecond.
  package static func parse(_ text: String) throws(DurationTextError) -> Duration {
    if text == "0" { return .zero }
    guard let unit = units.first(where: { text.hasSuffix($0.name) }) else {
      throw isDecimal(text) ? .missingUnit(text) : .malformed(text)
    }
    let digits = text.dropLast(unit.name.count)
    guard isDecimal(digits), let number = Double(digits) else { throw .malformed(text) }
    let milliseconds = number * unit.milliseconds
    guard milliseconds <= 1000 * Double(longest.components.seconds) else { throw .tooLong(text) }
    return .microseconds(Int64((milliseconds * 1000).rounded()))
  }

  /// The duration in the largest unit that writes it as a whole number, `1500ms` rather than `1.5s`.
  package static func text(_ duration: Duration) -> String {
    if duration == .zero { return "0" }
    let (seconds, attoseconds) = duration.components
    let milliseconds = Double(seconds) * 1000 + Double(attoseconds) / 1e15
    let unit = units.last { milliseconds.remainder(dividingBy: $0.milliseconds) == 0 } ?? units[0]
    let count = milliseconds / unit.milliseconds
    return (count == count.rounded() ? "\(Int64(count))" : "\(count)") + unit.name
  }

  /// Whether `text` is digits with at most one point between them.
  private static func isDecimal(_ text: some StringProtocol) -> Bool {
    let parts = text.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count <= 2
      && parts.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy { (48...57).contains($0) } }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The text form of durations: `300ms`, `2s`, `5m`, `1h`, and `0`.
package enum DurationText {
  /// The accepted forms, for error messages.
  package static let forms = "a duration such as 300ms, 2s, 5m or 1h"

  /// The longest accepted duration, one year.
  package static let longest = Duration.seconds(366 * 24 * 3600)

  /// Reads a duration; `nil` for a malformed text, a missing unit or more than a year.
  package static func parse(_ text: some StringProtocol) -> Duration? {
    try? read(text)
  }

  /// Reads a duration.
  ///
  /// Fractions are accepted (`1.5s`), signs and spaces are not.
  ///
  /// - Throws: ``DurationTextError`` when `text` is not a duration.
  package static func read(_ text: some StringProtocol) throws(DurationTextError) -> Duration {
    let number = text.prefix { $0.isNumber || $0 == "." }
    guard let amount = NumberText.parse(number), number.first != ".", number.last != "." else {
      throw .malformed(String(text))
    }
    let nanoseconds: Double
    switch text[number.endIndex...] {
    case "ms": nanoseconds = amount * 1e6
    case "s": nanoseconds = amount * 1e9
    case "m": nanoseconds = amount * 60e9
    case "h": nanoseconds = amount * 3600e9
    case "" where amount == 0: return .zero
    case "": throw .missingUnit(String(text))
    default: throw .malformed(String(text))
    }
    guard nanoseconds <= Double(longest.components.seconds) * 1e9 else {
      throw .tooLong(String(text))
    }
    return .nanoseconds(Int64(nanoseconds.rounded()))
  }

  /// The duration that a malformed text most likely means.
  ///
  /// `unit` is assumed where the text has none.
  package static func suggestion(for text: String, unit standard: String = "s") -> String? {
    let compact = text.lowercased().filter { $0 != " " && $0 != "_" }
    if parse(compact) != nil, compact != text { return compact }
    let number = compact.prefix { $0.isNumber || $0 == "." || $0 == "," }
    let decimal = String(number.map { $0 == "," ? "." : $0 })
    guard !number.isEmpty, NumberText.parse(decimal) != nil else { return nil }
    let unit: String
    switch compact[number.endIndex...] {
    case "": unit = standard
    case "ms", "msec", "millis", "milliseconds", "millisecond": unit = "ms"
    case "s", "sec", "secs", "second", "seconds": unit = "s"
    case "m", "min", "mins", "minute", "minutes": unit = "m"
    case "h", "hr", "hour", "hours": unit = "h"
    default: return nil
    }
    return parse(decimal + unit) == nil ? nil : decimal + unit
  }

  /// The shortest text that reads back as the same duration, in the largest unit with a whole
  /// count.
  package static func text(_ duration: Duration) -> String {
    let (seconds, attoseconds) = duration.components
    let milliseconds = Double(attoseconds) / 1e15
    if attoseconds != 0 {
      return NumberText.shortest(Double(seconds) * 1000 + milliseconds) + "ms"
    }
    if seconds == 0 { return "0" }
    if seconds % 3600 == 0 { return "\(seconds / 3600)h" }
    return seconds % 60 == 0 ? "\(seconds / 60)m" : "\(seconds)s"
  }
}

/// Why a text is not a duration; the description reads well after the name of a setting.
package enum DurationTextError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A number without a unit.
  case missingUnit(String)
  case malformed(String)
  case tooLong(String)

  package var description: String {
    switch self {
    case .missingUnit(let text):
      #"needs a unit, found "\#(Excerpt.of(text))"; did you mean "\#(text)s" or "\#(text)ms"?"#
    case .malformed(let text):
      #"must be \#(DurationText.forms), found "\#(Excerpt.of(text))""#
        + Suggestion.question(DurationText.suggestion(for: text))
    case .tooLong(let text): #"is too long, found "\#(Excerpt.of(text))"; one year is the most"#
    }
  }
}

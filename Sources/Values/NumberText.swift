// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON

/// Numbers as text: a decimal point, with optional sign, fraction and exponent.
package enum NumberText {
  /// The shortest text that reads back as `number`.
  package static func shortest(_ number: Double) -> String {
    var output: [UInt8] = []
    JSONWriter.appendNumber(number, to: &output)
    return String(decoding: output, as: UTF8.self)
  }

  /// Reads a number; `nil` for anything else, such as `nan`, `0x10`, `1e999` or an empty text.
  package static func parse(_ text: some StringProtocol) -> Double? {
    let bytes = Array(text.utf8)
    return parse(bytes.span)
  }

  /// The number that a malformed text most likely means: `21.5` for `21,5`.
  package static func suggestion(for text: String) -> String? {
    guard text.utf8.count <= 40, text.utf8.count(where: { $0 == UInt8(ascii: ",") }) == 1 else {
      return nil
    }
    let candidate = String(text.trimmed.map { $0 == "," ? "." : $0 })
    return parse(candidate) == nil ? nil : candidate
  }

  /// Reads a number from all of `bytes`.
  ///
  /// Creates no `String` for up to 15 digits.
  package static func parse(_ bytes: Span<UInt8>) -> Double? {
    var position = 0
    var isNegative = false
    if position < bytes.count, bytes[position] == 0x2D || bytes[position] == 0x2B {
      isNegative = bytes[position] == 0x2D
      position += 1
    }
    var digits: UInt64 = 0
    var count = 0
    var seen = 0
    var decimals = 0
    var hasPoint = false
    scan: while position < bytes.count {
      let byte = bytes[position]
      switch byte {
      case 0x30...0x39:
        seen += 1
        if count > 0 || byte != 0x30 { count += 1 }
        if count <= 18 { digits = digits * 10 + UInt64(byte - 0x30) }
        if hasPoint { decimals += 1 }
      case 0x2E where !hasPoint: hasPoint = true
      default: break scan
      }
      position += 1
    }
    guard seen > 0 else { return nil }
    if position == bytes.count, count <= 15, decimals <= 22 {
      // Both operands are exact, so the quotient is the nearest double.
      let magnitude = Double(digits) / Self.powersOfTen[decimals]
      return isNegative ? -magnitude : magnitude
    }
    return parseSlowly(bytes, exponentAt: position)
  }

  /// Reads a number with an exponent or more than 15 digits, which the standard library rounds.
  private static func parseSlowly(_ bytes: Span<UInt8>, exponentAt start: Int) -> Double? {
    var position = start
    if position < bytes.count {
      guard bytes[position] | 0x20 == UInt8(ascii: "e") else { return nil }
      position += 1
      if position < bytes.count, bytes[position] == 0x2D || bytes[position] == 0x2B {
        position += 1
      }
      guard position < bytes.count else { return nil }
      while position < bytes.count {
        guard (0x30...0x39).contains(bytes[position]) else { return nil }
        position += 1
      }
    }
    guard bytes.count <= 400, let number = Double(text(bytes)), number.isFinite else { return nil }
    return number
  }

  /// Decodes UTF-8 and replaces invalid sequences.
  package static func text(_ bytes: Span<UInt8>) -> String {
    var copy: [UInt8] = []
    copy.reserveCapacity(bytes.count)
    for index in bytes.indices { copy.append(bytes[index]) }
    return String(decoding: copy, as: UTF8.self)
  }

  private static let powersOfTen: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17,
    1e18, 1e19, 1e20, 1e21, 1e22,
  ]
}

extension StringProtocol {
  /// The text without leading and trailing spaces, tabs and line breaks.
  package var trimmed: SubSequence {
    let isSpace = { (scalar: Character) in scalar.isWhitespace && scalar.isASCII }
    guard let first = firstIndex(where: { !isSpace($0) }),
      let last = lastIndex(where: { !isSpace($0) })
    else { return self[endIndex...] }
    return self[first...last]
  }
}

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

/// A text with a number in it, in the notation of C's `printf`: `TT=%g`, `Z01%02X`, `%.1f °C`.
///
/// There is one conversion: `%g` for the shortest form, `%.1f` for that many decimals, `%d` for a
/// whole number, `%x` and `%X` for a hexadecimal one. A width that begins with 0, as in `%02X`, fills
/// the number with zeros. `%%` is a percent sign.
package struct NumberFormat: Hashable, Sendable {
  private enum Form: Hashable {
    case shortest
    case fixed(decimals: Int)
    case whole(radix: Int, isUpper: Bool)
  }

  /// The format as it was given.
  package let text: String
  private let prefix: String
  private let suffix: String
  private let form: Form
  private let width: Int

  /// Reads a format; `nil` for a text without exactly one conversion, or with another one.
  package init?(_ text: String) {
    var parts = [""]
    var found: (form: Form, width: Int)?
    var rest = text[...]
    while let letter = rest.popFirst() {
      guard letter == "%", rest.first != "%" else {
        if letter == "%" { rest.removeFirst() }
        parts[parts.count - 1].append(letter)
        continue
      }
      let style = rest.prefix { "0123456789.".contains($0) }
      rest = rest.dropFirst(style.count)
      guard found == nil, let kind = rest.popFirst(), let read = Self.conversion(style, kind) else {
        return nil
      }
      found = read
      parts.append("")
    }
    guard let found else { return nil }
    self.text = text
    (prefix, suffix) = (parts[0], parts[1])
    (form, width) = found
  }

  private static func conversion(_ style: Substring, _ kind: Character)
    -> (form: Form, width: Int)?
  {
    let numbers = style.split(separator: ".", omittingEmptySubsequences: false)
    guard numbers[0].isEmpty || numbers[0].first == "0", numbers.count <= 2 else { return nil }
    let width = Int(numbers[0]) ?? 0
    let decimals = numbers.count == 2 ? Int(numbers[1]) : nil
    guard width <= 20, (decimals ?? 0) <= 9, kind == "f" || numbers.count == 1 else { return nil }
    switch kind {
    case "g": return (.shortest, width)
    case "f": return (.fixed(decimals: decimals ?? 6), width)
    case "d": return (.whole(radix: 10, isUpper: false), width)
    case "x", "X": return (.whole(radix: 16, isUpper: kind == "X"), width)
    default: return nil
    }
  }

  /// The text with a number in it; `%d` and `%X` round.
  package func text(_ number: Double) -> String {
    let amount = number.magnitude
    var digits: String
    switch form {
    case .fixed(let decimals) where amount < 1e15: digits = Self.fixed(amount, decimals)
    case .shortest, .fixed: digits = NumberText.shortest(amount)
    case .whole(let radix, let isUpper):
      let whole = UInt64(exactly: amount.rounded()) ?? .max
      digits = String(whole, radix: radix, uppercase: isUpper)
    }
    let sign = number < 0 ? "-" : ""
    let zeros = String(repeating: "0", count: max(0, width - digits.count - sign.count))
    return prefix + sign + zeros + digits + suffix
  }

  /// The number in a text, where whatever follows it is ignored, and so is what precedes it if the
  /// format begins with a decimal number; `nil` if there is none.
  package func number(in text: String) -> Double? {
    guard text.hasPrefix(prefix) else { return nil }
    let isHexadecimal = if case .whole(16, _) = form { true } else { false }
    let letters = isHexadecimal ? "+-0123456789abcdefABCDEF" : "+-0123456789.eE"
    let rest = text.dropFirst(prefix.count).drop { letter in
      isHexadecimal || !prefix.isEmpty ? letter == " " : !"+-.0123456789".contains(letter)
    }
    var part = rest.prefix { letters.contains($0) }.prefix(40)
    while !part.isEmpty {
      let number =
        isHexadecimal
        ? Int64(part, radix: 16).map { Double($0) } : NumberText.parse(part)
      if let number { return number }
      part.removeLast()
    }
    return nil
  }

  /// A number with so many decimals, at most 15, rounded as ``rounded(_:_:)`` says.
  ///
  /// - Precondition: The number is below 1e15.
  package static func fixed(_ number: Double, _ decimals: Int) -> String {
    var power = 1.0
    for _ in 0..<decimals { power *= 10 }
    let rounded = Self.rounded(number, power)
    guard decimals > 0 else { return String(Int64(rounded)) }
    let whole = rounded.magnitude.rounded(.down)
    let fraction = String(Int64(((rounded.magnitude - whole) * power).rounded()))
    let zeros = String(repeating: "0", count: max(0, decimals - fraction.count))
    return (rounded < 0 ? "-" : "") + "\(Int64(whole)).\(zeros)\(fraction)"
  }

  /// Rounds to the nearest multiple of `1 / power`; a tie in decimals goes to the even one.
  package static func rounded(_ number: Double, _ power: Double) -> Double {
    let product = number * power
    let lower = product.rounded(.down)
    guard product - lower == 0.5 else { return product.rounded() / power }
    // What the multiplication lost tells a tie from what only looks like one.
    let lost = (-product).addingProduct(number, power)
    let isUp = lost == 0 ? lower.truncatingRemainder(dividingBy: 2) != 0 : lost > 0
    return (isUp ? lower + 1 : lower) / power
  }
}

/// Sizes in bytes as text: `64KiB`, `1MiB`, or a plain number.
package enum SizeText {
  /// The accepted forms, for error messages.
  package static let forms = "a size such as 64KiB, 1MiB or 65536"

  /// Reads a size in bytes; `nil` for a malformed text or an overflow.
  package static func parse(_ text: some StringProtocol) -> Int? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let amount = Int(digits) else { return nil }
    let factor: Int
    switch text[digits.endIndex...] {
    case "", "B": factor = 1
    case "KiB": factor = 1 << 10
    case "MiB": factor = 1 << 20
    case "GiB": factor = 1 << 30
    default: return nil
    }
    let (product, overflow) = amount.multipliedReportingOverflow(by: factor)
    return overflow ? nil : product
  }

  /// The size that a malformed text most likely means.
  package static func suggestion(for text: String) -> String? {
    let compact = text.lowercased().filter { $0 != " " }
    let digits = compact.prefix { $0.isASCII && $0.isNumber }
    guard !digits.isEmpty else { return nil }
    let unit: String
    switch compact[digits.endIndex...] {
    case "k", "kb", "kib": unit = "KiB"
    case "m", "mb", "mib": unit = "MiB"
    case "g", "gb", "gib": unit = "GiB"
    default: return nil
    }
    return digits + unit
  }
}

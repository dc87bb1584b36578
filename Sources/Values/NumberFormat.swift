// Settle
// SPDX-License-Identifier: Apache-2.0

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

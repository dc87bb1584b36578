// Settle
// SPDX-License-Identifier: Apache-2.0

/// Python's formats of numbers and texts.
enum TemplateFormat {
  /// Formats as `'%0.2f' % number`.
  static func percent(_ format: String, _ values: [TemplateValue], _ context: TemplateContext)
    throws -> String
  {
    var result = ""
    var values = values[...]
    var rest = format[...]
    while let letter = rest.popFirst() {
      guard letter == "%" else {
        result.append(letter)
        continue
      }
      if rest.first == "%" {
        result.append(rest.removeFirst())
        continue
      }
      let style = rest.prefix { "-+ #.0123456789".contains($0) }
      rest = rest.dropFirst(style.count)
      guard let kind = rest.popFirst(), let value = values.popFirst() else {
        throw TemplateFailure.failed
      }
      result += try formatted(value, style, kind)
    }
    guard values.isEmpty else { throw TemplateFailure.failed }
    return try context.limited(result)
  }

  /// Formats as `'{:02x}'.format(number)`.
  static func braces(_ format: String, _ values: [TemplateValue], _ context: TemplateContext)
    throws -> String
  {
    var result = ""
    var next = 0
    var rest = format[...]
    while let letter = rest.popFirst() {
      guard letter == "{" || letter == "}" else {
        result.append(letter)
        continue
      }
      if rest.first == letter {
        result.append(rest.removeFirst())
        continue
      }
      guard letter == "{", let end = rest.firstIndex(of: "}") else {
        throw TemplateFailure.unsupported
      }
      let parts = rest[..<end].split(separator: ":", omittingEmptySubsequences: false)
      rest = rest[rest.index(after: end)...]
      let place = parts.first.flatMap { Int($0) } ?? next
      next += 1
      guard parts.count <= 2, parts[0].isEmpty || Int(parts[0]) != nil,
        values.indices.contains(place)
      else { throw TemplateFailure.unsupported }
      guard parts.count == 2, let kind = parts[1].last else {
        result += values[place].written
        continue
      }
      result += try formatted(values[place], parts[1].dropLast(), kind)
    }
    return try context.limited(result)
  }

  private static func formatted(_ value: TemplateValue, _ style: Substring, _ kind: Character)
    throws -> String
  {
    let flags = style.prefix { "-+ #0".contains($0) }
    let numbers = style.dropFirst(flags.count).split(
      separator: ".",
      omittingEmptySubsequences: false
    )
    let width = numbers.first.flatMap { Int($0) } ?? 0
    let digits = numbers.count > 1 ? Int(numbers[1]) ?? 0 : 6
    guard width <= 100, digits <= 15, numbers.count <= 2 else { throw TemplateFailure.unsupported }
    var text: String
    switch kind {
    case "s": text = value.written
    case "d", "i", "x", "X":
      guard let number = value.double, kind.lowercased() != "x" || value.integer != nil,
        let integer = Int64(exactly: number.rounded(.towardZero))
      else { throw TemplateFailure.failed }
      text = String(integer, radix: kind.lowercased() == "x" ? 16 : 10, uppercase: kind == "X")
    case "f":
      guard let number = value.parsed, number.magnitude < 1e15 else { throw TemplateFailure.failed }
      text = fixed(number, digits)
    default: throw TemplateFailure.unsupported
    }
    if flags.contains("+"), !text.hasPrefix("-"), kind != "s" { text = "+" + text }
    let missing = String(
      repeating: flags.contains("0") && kind != "s" ? "0" : " ",
      count: max(0, width - text.count)
    )
    if flags.contains("-") { return text + String(repeating: " ", count: missing.count) }
    let sign = missing.hasPrefix("0") ? text.prefix { "+-".contains($0) } : ""
    return sign + missing + text.dropFirst(sign.count)
  }

  /// A number with so many decimals.
  private static func fixed(_ number: Double, _ digits: Int) -> String {
    var power = 1.0
    for _ in 0..<digits { power *= 10 }
    let rounded = Self.rounded(number, power)
    guard digits > 0 else { return String(Int64(rounded)) }
    let whole = rounded.magnitude.rounded(.down)
    let fraction = String(Int64(((rounded.magnitude - whole) * power).rounded()))
    let zeros = String(repeating: "0", count: max(0, digits - fraction.count))
    return (rounded < 0 ? "-" : "") + "\(Int64(whole)).\(zeros)\(fraction)"
  }

  /// Rounds to the nearest multiple of `1 / power`; a tie in decimals goes to the even one.
  static func rounded(_ number: Double, _ power: Double) -> Double {
    let product = number * power
    let lower = product.rounded(.down)
    guard product - lower == 0.5 else { return product.rounded() / power }
    // What the multiplication lost tells a tie from what only looks like one.
    let lost = (-product).addingProduct(number, power)
    let isUp = lost == 0 ? lower.truncatingRemainder(dividingBy: 2) != 0 : lost > 0
    return (isUp ? lower + 1 : lower) / power
  }
}

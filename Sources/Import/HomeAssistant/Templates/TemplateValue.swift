// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// A value inside a template, with Python's rules for truth, equality, order and text.
enum TemplateValue {
  case undefined
  case none
  case boolean(Bool)
  case integer(Int64)
  case number(Double)
  case text(String)
  case list([TemplateValue])
  case table([(key: TemplateValue, value: TemplateValue)])
  /// The part of the report at a path; it counts as read once its value is used.
  case report([JSONValue])

  init(_ json: JSONValue) {
    switch json {
    case .null: self = .none
    case .boolean(let flag): self = .boolean(flag)
    case .integer(let integer): self = .integer(integer)
    case .number(let number): self = .number(number)
    case .string(let text): self = .text(text)
    case .array(let elements): self = .list(elements.map { TemplateValue($0) })
    case .object(let members):
      self = .table(members.map { (key: .text($0.name), value: TemplateValue($0.value)) })
    }
  }

  /// The value as JSON; `nil` if it has none.
  var json: JSONValue? {
    switch self {
    case .undefined, .report: return Optional.none
    case .none: return .null
    case .boolean(let flag): return .boolean(flag)
    case .integer(let integer): return .integer(integer)
    case .number(let number): return .number(number)
    case .text(let text): return .string(text)
    case .list(let elements):
      let parts = elements.compactMap(\.json)
      return parts.count == elements.count ? .array(parts) : Optional.none
    case .table(let entries):
      let members = entries.compactMap { entry in
        entry.value.json.map { JSONValue.Member(entry.key.written, $0) }
      }
      return members.count == entries.count ? .object(members) : Optional.none
    }
  }

  var isTrue: Bool {
    switch self {
    case .undefined, .none, .report: false
    case .boolean(let flag): flag
    case .integer(let integer): integer != 0
    case .number(let number): number != 0
    case .text(let text): !text.isEmpty
    case .list(let elements): !elements.isEmpty
    case .table(let entries): !entries.isEmpty
    }
  }

  /// The number, where true and false are 1 and 0.
  var double: Double? {
    switch self {
    case .boolean(let flag): flag ? 1 : 0
    case .integer(let integer): Double(integer)
    case .number(let number): number
    case .undefined, .none, .text, .list, .table, .report: Optional.none
    }
  }

  /// The whole number, where true and false are 1 and 0.
  var integer: Int64? {
    switch self {
    case .boolean(let flag): flag ? 1 : 0
    case .integer(let integer): integer
    case .undefined, .none, .number, .text, .list, .table, .report: Optional.none
    }
  }

  var text: String? { if case .text(let text) = self { text } else { Optional.none } }

  var elements: [TemplateValue]? {
    switch self {
    case .list(let elements): elements
    case .table(let entries): entries.map(\.key)
    case .text(let text): text.unicodeScalars.map { .text(String($0)) }
    case .undefined, .none, .boolean, .integer, .number, .report: Optional.none
    }
  }

  var isUndefined: Bool { if case .undefined = self { true } else { false } }

  /// The text that a template writes for the value.
  var written: String {
    switch self {
    case .undefined, .report: ""
    case .none: "None"
    case .boolean(let flag): flag ? "True" : "False"
    case .integer(let integer): String(integer)
    case .number(let number): "\(number)"
    case .text(let text): text
    case .list(let elements): "[\(elements.map(\.quoted).joined(separator: ", "))]"
    case .table(let entries):
      "{" + entries.map { "\($0.key.quoted): \($0.value.quoted)" }.joined(separator: ", ") + "}"
    }
  }

  private var quoted: String {
    guard case .text(let text) = self else { return written }
    let quote = text.contains("'") && !text.contains("\"") ? "\"" : "'"
    return quote + text.replaced("\\", by: "\\\\").replaced(quote, by: "\\\(quote)") + quote
  }

  func isEqual(to other: TemplateValue) -> Bool {
    if let left = double, let right = other.double { return left == right }
    switch (self, other) {
    case (.undefined, .undefined), (.none, .none): return true
    case (.text(let left), .text(let right)): return left == right
    case (.list(let left), .list(let right)):
      return left.count == right.count && zip(left, right).allSatisfy { $0.isEqual(to: $1) }
    case (.table(let left), .table):
      return left.count == other.elements?.count
        && left.allSatisfy { entry in other.entry(entry.key)?.isEqual(to: entry.value) ?? false }
    case (.undefined, _), (.none, _), (.boolean, _), (.integer, _), (.number, _), (.text, _),
      (.list, _), (.table, _), (.report, _):
      return false
    }
  }

  /// Whether it comes before `other`; throws where Python does not compare the two.
  func isLess(than other: TemplateValue) throws -> Bool {
    if let left = double, let right = other.double { return left < right }
    guard let left = text, let right = other.text else { throw TemplateFailure.failed }
    return left.unicodeScalars.lexicographicallyPrecedes(right.unicodeScalars)
  }

  /// The value of a table's entry.
  func entry(_ key: TemplateValue) -> TemplateValue? {
    guard case .table(let entries) = self else { return Optional.none }
    return entries.last { $0.key.isEqual(to: key) }?.value
  }

  func contains(_ part: TemplateValue) throws -> Bool {
    if let text {
      guard let wanted = part.text else { throw TemplateFailure.failed }
      return wanted.isEmpty || text.has(wanted)
    }
    guard let elements else { throw TemplateFailure.failed }
    return elements.contains { $0.isEqual(to: part) }
  }
}

/// Why a template has no result.
enum TemplateFailure: Error {
  /// It has a mistake for this input, such as a word in the place of a number.
  case failed
  /// It uses something that is not in the subset, or too many steps.
  case unsupported
}

extension StringProtocol {
  /// The text without leading and trailing whitespace.
  var trimmedSpace: String {
    let isSpace = { (character: Character) in character.isWhitespace }
    return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
  }
}

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
      text = NumberFormat.fixed(number, digits)
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
}

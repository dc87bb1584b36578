// Settle
// SPDX-License-Identifier: Apache-2.0

private import Glibc
internal import JSON
internal import Values

/// The filters, functions and tests of the subset, as Home Assistant defines them.
enum TemplateFunctions {
  /// A function of its arguments, of which the first is what a filter is applied to.
  typealias Function = (TemplateArguments.Values, TemplateContext) throws ->
    TemplateValue

  static func named(_ name: String) -> Function? {
    switch name {
    case "abs": { v, _ in try v.number().negative { $0.magnitude } }
    case "add", "multiply":
      { v, context in
        guard let number = v[0]?.parsed else { return try v.first(nil, "default", 2) }
        return try .combined(.number(number), name == "add" ? "+" : "*", v[1] ?? .none, context)
      }
    case "bitwise_and": { v, _ in try .integer(v.integer(0) & v.integer(1)) }
    case "bitwise_or": { v, _ in try .integer(v.integer(0) | v.integer(1)) }
    case "bitwise_xor": { v, _ in try .integer(v.integer(0) ^ v.integer(1)) }
    case "bool": { v, _ in try v.first(v[0]?.flag, "default", 1) }
    case "capitalize", "lower", "title", "trim", "upper", "replace", "split":
      { v, context in
        let text = TemplateValue.text(v[0]?.written ?? "")
        var rest = v
        rest.all.removeFirst()
        return try text.calling(name == "trim" ? "strip" : name, rest, context)
      }
    case "count", "length": { v, _ in .integer(try Int64(v.elements().count)) }
    case "first": { v, _ in try v.elements().first ?? .undefined }
    case "float":
      { v, _ in
        try v.first(v[0]?.parsed.map { .number($0) }, "default", 1)
      }
    case "format":
      { v, context in
        .text(try TemplateFormat.percent(v[0]?.written ?? "", Array(v.all.dropFirst()), context))
      }
    case "from_json":
      { v, _ in
        guard let text = v[0]?.text, let json = try? JSONParser.parse(Array(text.utf8).span) else {
          throw TemplateFailure.failed
        }
        return TemplateValue(json)
      }
    case "iif":
      { v, _ in
        if case TemplateValue.none? = v[0], let other = v[3] { return other }
        return v[0]?.isTrue == true ? v[1] ?? .boolean(true) : v[2] ?? .boolean(false)
      }
    case "int":
      { v, context in
        if context.isExact, let number = v[0]?.parsed { return .number(number) }
        let base = v.named("base", 2)?.integer ?? 10
        return try v.first(v[0]?.whole(base: base).map { .integer($0) }, "default", 1)
      }
    case "is_number": { v, _ in .boolean(v[0]?.parsed?.isFinite ?? false) }
    case "join":
      { v, context in
        let parts = try v.elements().map(\.written)
        return .text(try context.limited(parts.joined(separator: v[1]?.written ?? "")))
      }
    case "last": { v, _ in try v.elements().last ?? .undefined }
    case "list": { v, _ in .list(try v.elements()) }
    case "max", "min":
      { v, _ in
        let elements = v.all.count > 1 ? v.all : try v.elements()
        guard var best = elements.first else { return .undefined }
        for element in elements.dropFirst() {
          let isLess = try element.isLess(than: best)
          if isLess == (name == "min"), !element.isEqual(to: best) { best = element }
        }
        return best
      }
    case "ord":
      { v, _ in
        guard let scalar = v[0]?.text?.unicodeScalars.first else { throw TemplateFailure.failed }
        return .integer(Int64(scalar.value))
      }
    case "range":
      { v, _ in
        let (low, high) = (v.all.count > 1 ? try v.integer(0) : 0, try v.integer(v.all.count - 1))
        guard v.all.count < 3, high - low <= 1000 else { throw TemplateFailure.unsupported }
        return .list(low < high ? (low..<high).map { .integer($0) } : [])
      }
    case "round": { v, context in try rounded(v, context) }
    case "string": { v, _ in .text(v[0]?.written ?? "") }
    case "to_json", "tojson":
      { v, context in
        guard let json = v[0]?.json else { throw TemplateFailure.failed }
        return .text(try context.limited(JSONWriter.text(json)))
      }
    default: nil
    }
  }

  static func test(_ name: String) -> ((TemplateValue, TemplateValue) throws -> Bool)? {
    switch name {
    case "none": { value, _ in if case .none = value { true } else { false } }
    case "number": { value, _ in value.double != nil }
    case "is_number": { value, _ in value.parsed?.isFinite ?? false }
    case "string": { value, _ in value.text != nil }
    case "boolean": { value, _ in if case .boolean = value { true } else { false } }
    case "true", "false":
      { value, _ in
        if case .boolean(let flag) = value { flag == (name == "true") } else { false }
      }
    case "integer": { value, _ in if case .integer = value { true } else { false } }
    case "float": { value, _ in if case .number = value { true } else { false } }
    case "mapping": { value, _ in if case .table = value { true } else { false } }
    case "sequence", "iterable": { value, _ in value.elements != nil }
    case "eq", "equalto": { value, other in value.isEqual(to: other) }
    case "ne": { value, other in !value.isEqual(to: other) }
    case "in": { value, other in try other.contains(value) }
    case "odd", "even":
      { value, _ in
        guard let integer = value.integer else { throw TemplateFailure.failed }
        return integer & 1 == (name == "odd" ? 1 : 0)
      }
    default: nil
    }
  }

  private static func rounded(_ v: TemplateArguments.Values, _ context: TemplateContext)
    throws -> TemplateValue
  {
    guard let number = v[0]?.parsed else { return try v.first(nil, "default", 3) }
    if context.isExact { return .number(number) }
    let digits = v.named("precision", 1)?.integer ?? 0
    guard (0...15).contains(digits), number.isFinite else { throw TemplateFailure.unsupported }
    var power = 1.0
    for _ in 0..<digits { power *= 10 }
    let result =
      switch v.named("method", 2)?.text ?? "common" {
      case "ceil": (number * power).rounded(.up) / power
      case "floor": (number * power).rounded(.down) / power
      case "half": (number * 2).rounded(.toNearestOrEven) / 2
      default: TemplateFormat.rounded(number, power)
      }
    guard digits == 0 else { return .number(result) }
    guard let integer = Int64(exactly: result.rounded(.towardZero)) else {
      throw TemplateFailure.failed
    }
    return .integer(integer)
  }
}

extension TemplateArguments.Values {
  /// A result, or the default where the input has none.
  fileprivate func first(_ result: TemplateValue?, _ name: String, _ index: Int)
    throws -> TemplateValue
  {
    guard let value = result ?? named(name, index) else { throw TemplateFailure.failed }
    return value
  }

  fileprivate func number() throws -> TemplateValue {
    guard let value = self[0], value.double != nil else { throw TemplateFailure.failed }
    return value
  }

  fileprivate func integer(_ index: Int) throws -> Int64 {
    guard let integer = self[index]?.integer else { throw TemplateFailure.failed }
    return integer
  }

  fileprivate func elements() throws -> [TemplateValue] {
    guard let elements = self[0]?.elements else { throw TemplateFailure.failed }
    return elements
  }
}

extension TemplateValue {
  /// The number of a number or of a text.
  var parsed: Double? { double ?? text.flatMap { NumberText.parse($0.trimmedSpace) } }

  fileprivate func whole(base: Int64) -> Int64? {
    if let integer { return integer }
    if let text, (2...36).contains(base) {
      var digits = text.trimmedSpace
      if base == 16, digits.lowercased().hasPrefix("0x") { digits.removeFirst(2) }
      if let integer = Int64(digits, radix: Int(base)) { return integer }
    }
    return parsed.flatMap { Int64(exactly: $0.rounded(.towardZero)) }
  }

  fileprivate var flag: TemplateValue? {
    if let double { return .boolean(double != 0) }
    switch text?.trimmedSpace.lowercased() {
    case "true", "yes", "on", "enable", "1": return .boolean(true)
    case "false", "no", "off", "disable", "0": return .boolean(false)
    default: return Optional.none
    }
  }

  fileprivate func negative(_ change: (Double) -> Double) throws -> TemplateValue {
    if let integer { return .integer(integer == .min ? .max : abs(integer)) }
    return .number(change(double ?? 0))
  }

  /// The result of an operator.
  static func combined(
    _ left: TemplateValue,
    _ sign: String,
    _ right: TemplateValue,
    _ context: TemplateContext
  ) throws -> TemplateValue {
    if sign == "~" { return .text(try context.limited(left.written + right.written)) }
    if sign == "%", let format = left.text {
      let parts = if case .list(let elements) = right { elements } else { [right] }
      return .text(try TemplateFormat.percent(format, parts, context))
    }
    if sign == "+", let left = left.text, let right = right.text {
      return .text(try context.limited(left + right))
    }
    if sign == "+", case .list(let left) = left, case .list(let right) = right {
      guard left.count + right.count <= 1000 else { throw TemplateFailure.unsupported }
      return .list(left + right)
    }
    if let left = left.integer, let right = right.integer, sign != "/" {
      return try combined(left, sign, right)
    }
    guard let left = left.double, let right = right.double else { throw TemplateFailure.failed }
    switch sign {
    case "+": return .number(left + right)
    case "-": return .number(left - right)
    case "*": return .number(left * right)
    case "**": return .number(pow(left, right))
    default: break
    }
    guard right != 0 else { throw TemplateFailure.failed }
    switch sign {
    case "/": return .number(left / right)
    case "//": return .number((left / right).rounded(.down))
    default: return .number(left - (left / right).rounded(.down) * right)
    }
  }

  private static func combined(_ left: Int64, _ sign: String, _ right: Int64)
    throws -> TemplateValue
  {
    var result: (partialValue: Int64, overflow: Bool)
    switch sign {
    case "+": result = left.addingReportingOverflow(right)
    case "-": result = left.subtractingReportingOverflow(right)
    case "*": result = left.multipliedReportingOverflow(by: right)
    case "**":
      guard right >= 0 else { return .number(pow(Double(left), Double(right))) }
      guard let integer = Int64(exactly: pow(Double(left), Double(right))) else {
        throw TemplateFailure.failed
      }
      result = (integer, false)
    default:
      guard right != 0, right != -1 else { throw TemplateFailure.failed }
      let (quotient, rest) = left.quotientAndRemainder(dividingBy: right)
      let isBelow = rest != 0 && (rest < 0) != (right < 0)
      result = (sign == "%" ? (isBelow ? rest + right : rest) : quotient - (isBelow ? 1 : 0), false)
    }
    guard !result.overflow else { throw TemplateFailure.failed }
    return .integer(result.partialValue)
  }

  /// A member, an element or a character.
  func element(_ key: TemplateValue) throws -> TemplateValue {
    switch self {
    case .undefined: throw TemplateFailure.failed
    case .table: return entry(key) ?? .undefined
    case .list, .text:
      guard let elements, let index = key.integer else { return .undefined }
      let place = index < 0 ? index + Int64(elements.count) : index
      return elements.indices.contains(Int(place)) ? elements[Int(place)] : .undefined
    case .none, .boolean, .integer, .number, .report: return .undefined
    }
  }

  func sliced(_ low: Int64?, _ high: Int64?) throws -> TemplateValue {
    guard let elements else { throw TemplateFailure.failed }
    func bound(_ index: Int64) -> Int {
      let count = Int64(elements.count)
      return Int(min(max(index < 0 ? index + count : index, 0), count))
    }
    let (low, high) = (bound(low ?? 0), bound(high ?? .max))
    let part = Array(elements[min(low, high)..<high])
    if text != nil { return .text(part.map(\.written).joined()) }
    return .list(part)
  }

  /// The result of a method.
  func calling(
    _ name: String,
    _ arguments: TemplateArguments.Values,
    _ context: TemplateContext
  ) throws -> TemplateValue {
    switch self {
    case .text(let text): return try Self.calling(text, name, arguments, context)
    case .list(let elements):
      let matching = elements.indices.filter {
        elements[$0].isEqual(to: arguments[0] ?? .undefined)
      }
      if name == "count" { return .integer(Int64(matching.count)) }
      guard name == "index", let first = matching.first else { throw TemplateFailure.failed }
      return .integer(Int64(first))
    case .table(let entries):
      switch name {
      case "get": return entry(arguments[0] ?? .undefined) ?? arguments[1] ?? .none
      case "keys": return .list(entries.map(\.key))
      case "values": return .list(entries.map(\.value))
      default: throw TemplateFailure.unsupported
      }
    case .undefined, .none, .boolean, .integer, .number, .report: throw TemplateFailure.failed
    }
  }

  private static func calling(
    _ text: String,
    _ name: String,
    _ arguments: TemplateArguments.Values,
    _ context: TemplateContext
  ) throws -> TemplateValue {
    let word = arguments[0]?.text
    switch name {
    case "lower": return .text(text.lowercased())
    case "upper": return .text(text.uppercased())
    case "capitalize": return .text(text.prefix(1).uppercased() + text.dropFirst().lowercased())
    case "title":
      var isStart = true
      return .text(
        String(
          text.flatMap { letter in
            defer { isStart = !letter.isLetter }
            return isStart ? letter.uppercased() : letter.lowercased()
          }
        )
      )
    case "isdigit", "isnumeric", "isdecimal":
      return .boolean(!text.isEmpty && text.allSatisfy(\.isNumber))
    case "strip", "lstrip", "rstrip":
      let isCut = { (letter: Character) in word.map { $0.contains(letter) } ?? letter.isWhitespace }
      var part = text[...]
      if name != "rstrip" { part = part.drop(while: isCut) }
      if name != "lstrip" { while part.last.map(isCut) == true { part.removeLast() } }
      return .text(String(part))
    case "split":
      guard let word else {
        return .list(text.split(whereSeparator: \.isWhitespace).map { .text(String($0)) })
      }
      guard !word.isEmpty, arguments.all.count < 2 else { throw TemplateFailure.unsupported }
      return .list(parts(of: text, between: word).map { .text($0) })
    case "format": return .text(try TemplateFormat.braces(text, arguments.all, context))
    default: break
    }
    guard let word else { throw TemplateFailure.failed }
    switch name {
    case "startswith": return .boolean(text.hasPrefix(word))
    case "endswith": return .boolean(text.hasSuffix(word))
    case "removeprefix":
      return .text(text.hasPrefix(word) ? String(text.dropFirst(word.count)) : text)
    case "removesuffix":
      return .text(text.hasSuffix(word) ? String(text.dropLast(word.count)) : text)
    case "find":
      let place = text.firstPlace(of: word)
      return .integer(place.map { Int64(text[..<$0.lowerBound].unicodeScalars.count) } ?? -1)
    case "count": return .integer(Int64(parts(of: text, between: word).count - 1))
    case "replace":
      guard let other = arguments[1]?.written, !word.isEmpty, arguments.all.count < 3 else {
        throw TemplateFailure.unsupported
      }
      let places = parts(of: text, between: word)
      guard places.count * other.utf8.count <= TemplateContext.longestText else {
        throw TemplateFailure.unsupported
      }
      return .text(try context.limited(places.joined(separator: other)))
    default: throw TemplateFailure.unsupported
    }
  }

  private static func parts(of text: String, between word: String) -> [String] {
    var parts: [String] = []
    var rest = text[...]
    while let place = rest.firstPlace(of: word) {
      parts.append(String(rest[..<place.lowerBound]))
      rest = rest[place.upperBound...]
    }
    return parts + [String(rest)]
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

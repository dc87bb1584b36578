// Settle
// SPDX-License-Identifier: Apache-2.0

private import Glibc
internal import Values

extension TemplateValue {
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

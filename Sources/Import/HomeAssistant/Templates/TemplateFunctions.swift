// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// The filters, functions and tests of the subset, as Home Assistant defines them.
enum TemplateFunctions {
  /// A function of its arguments, of which the first is what a filter is applied to.
  typealias Function = (TemplateArguments.Values, TemplateContext) throws ->
    TemplateValue

  static func named(_ name: String) -> Function? {
    switch name {
    case "abs": { v, _ in try v.number().magnitude }
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
        let base = v.named("base", 2)?.integer ?? 10
        if context.isExact, base == 10, let number = v[0]?.parsed { return .number(number) }
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
      default: NumberFormat.rounded(number, power)
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

  fileprivate var magnitude: TemplateValue {
    if let integer { return .integer(integer == .min ? .max : abs(integer)) }
    return .number((double ?? 0).magnitude)
  }
}

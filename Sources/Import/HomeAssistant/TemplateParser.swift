// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// Parses template expressions that only pick, scale or look up a value.
struct TemplateParser {
  private enum Token: Hashable {
    case name(String)
    case number(Double)
    case text(String)
    case sign(Character)
  }

  /// Filters that do not change the meaning of a payload.
  private static let ignoredFilters: Set = [
    "int", "float", "round", "string", "default", "tojson", "trim", "is_defined",
  ]
  /// Functions that do not change the meaning of their first argument.
  private static let ignoredFunctions: Set = ["int", "float"]

  private var tokens: ArraySlice<Token>
  private let variables: Set<String>

  /// The form of an expression; `nil` if it has another one.
  static func parse(_ text: String, variables: Set<String>) -> TemplateForm? {
    guard text.utf8.count <= 2048, let tokens = tokens(of: text) else { return nil }
    var parser = TemplateParser(tokens: tokens[...], variables: variables)
    guard let form = parser.choice(depth: 0), parser.tokens.isEmpty else { return nil }
    return form
  }

  /// The variable of a condition, and the constant that it is compared with; `nil` if it has
  /// another form.
  static func condition(
    _ text: String,
    variables: Set<String>
  ) -> (path: [String], constant: JSONValue)? {
    guard text.utf8.count <= 2048, let tokens = tokens(of: text) else { return nil }
    var parser = TemplateParser(tokens: tokens[...], variables: variables)
    guard let subject = parser.sum(depth: 0), case .linear(let path, 1, 0) = subject,
      let constant = parser.comparison(), parser.tokens.isEmpty
    else { return nil }
    return (path, constant)
  }

  // MARK: - Grammar

  /// Parses `A if CONDITION else B`, whose condition is that `A` is defined, that a value is true,
  /// or that it equals a constant.
  private mutating func choice(depth: Int) -> TemplateForm? {
    guard let then = sum(depth: depth) else { return nil }
    guard consume(name: "if") else { return then }
    guard let subject = sum(depth: depth) else { return nil }
    if consume(name: "is") { return presence(of: subject, then: then, depth: depth) }
    guard let constant = comparison(), consume(name: "else"), let other = sum(depth: depth)
    else { return nil }
    guard case .text(let word) = then, case .text(let otherwise) = other,
      case .linear(let path, 1, 0) = subject
    else { return nil }
    return .condition(path: path, equals: constant, then: word, otherwise: otherwise)
  }

  /// Parses `== CONSTANT`, or nothing, which compares with true.
  private mutating func comparison() -> JSONValue? {
    guard consume(oneOf: "=") != nil else { return true }
    return consume(oneOf: "=").flatMap { _ in constant() }
  }

  /// Parses the rest of a condition that a member and what contains it are defined, as in
  /// `A if B is defined and A is defined else 0`, or that one of them is not.
  private mutating func presence(
    of first: TemplateForm,
    then: TemplateForm,
    depth: Int
  ) -> TemplateForm? {
    let isDefined = consume(name: "defined")
    guard isDefined || consume(name: "undefined") else { return nil }
    var subjects = [first]
    while consume(name: isDefined ? "and" : "or") {
      guard let next = sum(depth: depth), consume(name: "is"),
        consume(name: isDefined ? "defined" : "undefined")
      else { return nil }
      subjects.append(next)
    }
    guard consume(name: "else"), let other = sum(depth: depth) else { return nil }
    var paths: [[String]] = []
    for subject in subjects {
      guard case .linear(let path, 1, 0) = subject else { return nil }
      paths.append(path)
    }
    guard let longest = paths.max(by: { $0.count < $1.count }),
      paths.allSatisfy({ longest.starts(with: $0) })
    else { return nil }
    switch (then, other) {
    case (.linear(longest, _, _), _): return isDefined ? then : nil
    case (.text(let word), .text(let otherwise)):
      return isDefined
        ? .presence(path: longest, then: word, otherwise: otherwise)
        : .presence(path: longest, then: otherwise, otherwise: word)
    default: return nil
    }
  }

  private mutating func consume(name: String) -> Bool {
    guard tokens.first == .name(name) else { return false }
    tokens.removeFirst()
    return true
  }

  private mutating func sum(depth: Int) -> TemplateForm? {
    guard depth < 20, var left = product(depth: depth) else { return nil }
    while let sign = consume(oneOf: "+-") {
      guard let right = product(depth: depth),
        let added = Self.added(left, right, sign: sign == "-" ? -1 : 1)
      else { return nil }
      left = added
    }
    return left
  }

  private mutating func product(depth: Int) -> TemplateForm? {
    guard var left = postfix(depth: depth) else { return nil }
    while let sign = consume(oneOf: "*/") {
      guard let right = postfix(depth: depth) else { return nil }
      switch (left, right, sign) {
      case (.linear(let path, let factor, let offset), .number(let number), "*"),
        (.number(let number), .linear(let path, let factor, let offset), "*"):
        left = .linear(path: path, factor: factor * number, offset: offset * number)
      case (.linear(let path, let factor, let offset), .number(let number), _) where number != 0:
        left = .linear(path: path, factor: factor / number, offset: offset / number)
      case (.number(let one), .number(let other), "*"): left = .number(one * other)
      case (.number(let one), .number(let other), _) where other != 0: left = .number(one / other)
      default: return nil
      }
    }
    return left
  }

  private static func added(
    _ left: TemplateForm,
    _ right: TemplateForm,
    sign: Double
  ) -> TemplateForm? {
    switch (left, right) {
    case (.linear(let path, let factor, let offset), .number(let number)):
      .linear(path: path, factor: factor, offset: offset + sign * number)
    case (.number(let number), .linear(let path, let factor, let offset)):
      .linear(path: path, factor: sign * factor, offset: number + sign * offset)
    case (.number(let one), .number(let other)): .number(one + sign * other)
    default: Optional.none
    }
  }

  private mutating func postfix(depth: Int) -> TemplateForm? {
    guard var form = primary(depth: depth) else { return nil }
    while let next = tokens.first {
      switch next {
      case .sign("."):
        tokens.removeFirst()
        guard case .name(let name)? = tokens.popFirst(),
          case .linear(let path, 1, 0) = form
        else { return nil }
        form = .plain(path + [name])
      case .sign("["):
        tokens.removeFirst()
        guard let index = sum(depth: depth + 1), consume(oneOf: "]") != nil else { return nil }
        switch (form, index) {
        case (.linear(let path, 1, 0), .text(let name)): form = .plain(path + [name])
        case (.linear(let path, 1, 0), .number(let number)):
          form = .plain(path + [NumberText.shortest(number)])
        case (.table(let table), .linear(let path, 1, 0)): form = .lookedUp(path: path, table)
        default: return nil
        }
      case .sign("|"):
        tokens.removeFirst()
        guard case .name(let filter)? = tokens.popFirst() else { return nil }
        if filter == "format" {
          guard case .text(let format) = form, let value = formatted(by: format, depth: depth)
          else { return nil }
          form = value
          continue
        }
        if filter == "multiply" {
          guard let product = multiplied(form, depth: depth) else { return nil }
          form = product
          continue
        }
        guard Self.ignoredFilters.contains(filter) else { return nil }
        if consume(oneOf: "(") != nil, !skipArguments() { return nil }
      default: return form
      }
    }
    return form
  }

  private mutating func primary(depth: Int) -> TemplateForm? {
    guard depth < 20, let token = tokens.popFirst() else { return nil }
    switch token {
    case .number(let number): return .number(number)
    case .text(let text): return .text(text)
    case .name(let name):
      if Self.ignoredFunctions.contains(name), consume(oneOf: "(") != nil {
        guard let form = choice(depth: depth + 1), skipArguments() else { return nil }
        return form
      }
      if ["true", "false"].contains(name.lowercased()) { return .text(name.lowercased()) }
      return variables.contains(name) ? .plain([]) : Optional.none
    case .sign("("):
      guard let form = choice(depth: depth + 1), consume(oneOf: ")") != nil else { return nil }
      return form
    case .sign("-"):
      guard case .number(let number)? = tokens.popFirst() else { return nil }
      return .number(-number)
    case .sign("{"): return table()
    case .sign: return nil
    }
  }

  /// Parses the argument of the filter `multiply`, applied to `form`.
  private mutating func multiplied(_ form: TemplateForm, depth: Int) -> TemplateForm? {
    guard consume(oneOf: "(") != nil, case .number(let number)? = sum(depth: depth + 1),
      consume(oneOf: ")") != nil, case .linear(let path, let factor, let offset) = form
    else { return nil }
    return .linear(path: path, factor: factor * number, offset: offset * number)
  }

  /// Parses the arguments of a format for one number, such as `'%0.2f'`, which is that number.
  private mutating func formatted(by format: String, depth: Int) -> TemplateForm? {
    let digits = format.dropFirst().dropLast()
    guard format.hasPrefix("%"), format.hasSuffix("f") || format.hasSuffix("d"),
      digits.allSatisfy({ $0.isNumber || $0 == "." }), consume(oneOf: "(") != nil,
      let form = choice(depth: depth + 1), consume(oneOf: ")") != nil
    else { return nil }
    return form
  }

  /// Parses a table of words up to its closing brace.
  private mutating func table() -> TemplateForm? {
    var members: [JSONValue.Member] = []
    while members.count < 200 {
      if consume(oneOf: "}") != nil { return .table(members) }
      guard let key = constant()?.scalarText, consume(oneOf: ":") != nil, let value = constant()
      else {
        return nil
      }
      members.append(JSONValue.Member(key, value))
      if consume(oneOf: ",") == nil, tokens.first != .sign("}") { return nil }
    }
    return nil
  }

  private mutating func constant() -> JSONValue? {
    let isNegative = consume(oneOf: "-") != nil
    switch tokens.popFirst() {
    case .text(let text): return .string(text)
    case .number(let number): return JSONValue(shortest: isNegative ? -number : number)
    case .name("true"), .name("True"): return true
    case .name("false"), .name("False"): return false
    case .name, .sign, nil: return Optional.none
    }
  }

  /// Skips a filter's arguments, such as the default for a missing value.
  private mutating func skipArguments() -> Bool {
    var depth = 1
    while let token = tokens.popFirst() {
      if token == .sign("(") { depth += 1 }
      if token == .sign(")") { depth -= 1 }
      if depth == 0 { return true }
    }
    return false
  }

  private mutating func consume(oneOf signs: String) -> Character? {
    guard case .sign(let sign)? = tokens.first, signs.contains(sign) else { return nil }
    tokens.removeFirst()
    return sign
  }

  // MARK: - Tokens

  private static func tokens(of text: String) -> [Token]? {
    var tokens: [Token] = []
    var rest = text[...]
    while let first = rest.first {
      if first.isWhitespace {
        rest.removeFirst()
      } else if first == "'" || first == "\"" {
        rest.removeFirst()
        guard let end = rest.firstIndex(of: first), !rest[..<end].contains("\\") else { return nil }
        tokens.append(.text(String(rest[..<end])))
        rest = rest[rest.index(after: end)...]
      } else if first.isASCII, first.isLetter || first == "_" {
        let word = rest.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
        tokens.append(.name(String(word)))
        rest = rest.dropFirst(word.count)
      } else if first.isASCII, first.isNumber {
        let word = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard let number = NumberText.parse(word) else { return nil }
        tokens.append(.number(number))
        rest = rest.dropFirst(word.count)
      } else if "+-*/.,:|()[]{}=~".contains(first) {
        tokens.append(.sign(first))
        rest.removeFirst()
      } else {
        return nil
      }
    }
    return tokens
  }
}

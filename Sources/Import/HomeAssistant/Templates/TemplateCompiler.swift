// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// Turns the pieces of a template into closures that evaluate it.
struct TemplateCompiler {
  typealias Expression = Template.Expression
  typealias Statement = Template.Statement

  /// The longest chain of operators of one kind, each of which is a call inside of the next.
  private static let longestChain = 100

  private(set) var facts = Template.Facts()
  /// The expression of a template that has nothing else.
  private(set) var onlyExpression: Expression?
  private var pieces: ArraySlice<TemplatePiece>
  private var tokens: ArraySlice<TemplateToken> = []
  private var depth = 0
  private var literals: [TemplateValue] = []

  init(_ pieces: [TemplatePiece]) { self.pieces = pieces[...] }

  // MARK: - Statements

  mutating func template() throws -> Statement {
    if pieces.count == 1, case .expression(let tokens)? = pieces.first {
      onlyExpression = try whole(tokens)
    }
    let body = try block(until: [])
    guard pieces.isEmpty else { throw TemplateFailure.unsupported }
    return body
  }

  /// Reads statements up to one of the words in `ends`, which stays the first piece.
  private mutating func block(until ends: Set<String>) throws -> Statement {
    var statements: [Statement] = []
    pieces: while let piece = pieces.first {
      switch piece {
      case .text(let text):
        statements.append { context in try context.write(text) }
      case .expression(let tokens):
        let expression = try whole(tokens)
        statements.append { context in
          try context.write(context.plain(expression(context)).written)
        }
      case .statement(let tokens):
        guard case .name(let word)? = tokens.first else { throw TemplateFailure.unsupported }
        if ends.contains(word) { break pieces }
        statements.append(try statement(word, tokens.dropFirst()))
        continue
      }
      pieces.removeFirst()
    }
    return { context in
      for statement in statements { try statement(context) }
    }
  }

  private mutating func statement(_ word: String, _ rest: ArraySlice<TemplateToken>)
    throws -> Statement
  {
    try descend()
    defer { depth -= 1 }
    pieces.removeFirst()
    tokens = rest
    switch word {
    case "if": return try conditional()
    case "for": return try loop()
    case "set":
      guard case .name(let name)? = tokens.popFirst() else { throw TemplateFailure.unsupported }
      var member: String?
      if accept(".") { member = try self.name() }
      guard accept("=") else { throw TemplateFailure.unsupported }
      let expression = try whole(Array(tokens))
      return { context in
        let value = try expression(context)
        guard let member else {
          context.variables[name] = value
          return
        }
        guard case .table(let entries)? = context.variables[name] else {
          throw TemplateFailure.failed
        }
        let others = entries.filter { !$0.key.isEqual(to: .text(member)) }
        context.variables[name] = .table(others + [(key: .text(member), value: value)])
      }
    default: throw TemplateFailure.unsupported
    }
  }

  private mutating func conditional() throws -> Statement {
    var branches: [(condition: Expression?, body: Statement)] = []
    var condition: Expression? = try whole(Array(tokens))
    while true {
      let body = try block(until: ["elif", "else", "endif"])
      branches.append((condition, body))
      guard case .statement(let end)? = pieces.popFirst() else { throw TemplateFailure.unsupported }
      if end == [.name("endif")] { break }
      guard condition != nil, branches.count < Self.longestChain else {
        throw TemplateFailure.unsupported
      }
      let isElse = end.first == .name("else")
      condition = isElse ? nil : try whole(Array(end.dropFirst()))
      if isElse, end.count > 1 { throw TemplateFailure.unsupported }
    }
    return { [branches] context in
      try context.step()
      for branch in branches {
        if let condition = branch.condition, try !context.plain(condition(context)).isTrue {
          continue
        }
        return try branch.body(context)
      }
    }
  }

  private mutating func loop() throws -> Statement {
    let name = try self.name()
    guard tokens.popFirst() == .name("in") else { throw TemplateFailure.unsupported }
    let list = try whole(Array(tokens))
    let body = try block(until: ["endfor"])
    guard case .statement([.name("endfor")])? = pieces.popFirst() else {
      throw TemplateFailure.unsupported
    }
    return { context in
      guard let elements = try context.plain(list(context)).elements else {
        throw TemplateFailure.failed
      }
      // What a loop sets is gone after it; members of a namespace stay.
      let outside = context.variables
      for element in elements {
        try context.step()
        context.variables[name] = element
        try body(context)
      }
      for (name, value) in outside {
        if case .table = value { continue }
        context.variables[name] = value
      }
    }
  }

  // MARK: - Expressions

  private mutating func whole(_ tokens: [TemplateToken]) throws -> Expression {
    self.tokens = tokens[...]
    let expression = try choice()
    guard self.tokens.isEmpty else { throw TemplateFailure.unsupported }
    return expression
  }

  private mutating func descend() throws {
    depth += 1
    guard depth <= Template.deepest else { throw TemplateFailure.unsupported }
  }

  /// Reads `A if B else C`.
  private mutating func choice() throws -> Expression {
    try descend()
    defer { depth -= 1 }
    let then = try either()
    guard accept(word: "if") else { return then }
    let condition = try either()
    let other: Expression = accept(word: "else") ? try choice() : { _ in .undefined }
    return { context in
      try context.step()
      return try context.plain(condition(context)).isTrue ? then(context) : other(context)
    }
  }

  private mutating func either() throws -> Expression {
    try chain({ parser in try parser.both() }, words: ["or"]) {
      _,
      left,
      right,
      context in
      let value = try context.plain(left(context))
      return value.isTrue ? value : try context.plain(right(context))
    }
  }

  private mutating func both() throws -> Expression {
    try chain({ parser in try parser.negation() }, words: ["and"]) {
      _,
      left,
      right,
      context in
      let value = try context.plain(left(context))
      return value.isTrue ? try context.plain(right(context)) : value
    }
  }

  private mutating func negation() throws -> Expression {
    guard accept(word: "not") else { return try comparison() }
    try descend()
    defer { depth -= 1 }
    let inner = try negation()
    return { context in
      .boolean(try !context.plain(inner(context)).isTrue)
    }
  }

  private mutating func comparison() throws -> Expression {
    let before = literals.count
    let first = try sum()
    var rest: [(sign: String, value: Expression)] = []
    while let sign = comparator(), rest.count < Self.longestChain {
      rest.append((sign, try sum()))
    }
    guard !rest.isEmpty else { return first }
    facts.compared += literals[before...]
    return { [rest] context in
      var left = try context.plain(first(context))
      for (sign, value) in rest {
        let right = try context.plain(value(context))
        let isTrue =
          switch sign {
          case "==": left.isEqual(to: right)
          case "!=": !left.isEqual(to: right)
          case "<": try left.isLess(than: right)
          case ">": try right.isLess(than: left)
          case "<=": try !right.isLess(than: left)
          case ">=": try !left.isLess(than: right)
          case "in": try right.contains(left)
          default: try !right.contains(left)
          }
        guard isTrue else { return .boolean(false) }
        left = right
      }
      return .boolean(true)
    }
  }

  private mutating func comparator() -> String? {
    if case .sign(let sign)? = tokens.first,
      ["==", "!=", "<", ">", "<=", ">="].contains(sign)
    {
      tokens.removeFirst()
      return sign
    }
    if accept(word: "in") { return "in" }
    if tokens.starts(with: [.name("not"), .name("in")]) {
      tokens.removeFirst(2)
      return "not in"
    }
    return nil
  }

  private mutating func sum() throws -> Expression {
    try arithmetic(["+", "-"]) { parser in
      try parser.arithmetic(["~"]) { parser in
        try parser.arithmetic(["*", "/", "//", "%"]) { parser in
          try parser.arithmetic(["**"]) { parser in
            try parser.signed(isFiltered: true)
          }
        }
      }
    }
  }

  private mutating func arithmetic(
    _ signs: Set<String>,
    _ operand: (inout TemplateCompiler) throws -> Expression
  ) throws -> Expression {
    try chain(operand, signs: signs) { sign, left, right, context in
      try TemplateValue.combined(
        context.plain(left(context)),
        sign,
        context.plain(right(context)),
        context
      )
    }
  }

  /// Reads operands with operators of one precedence between them.
  private mutating func chain(
    _ operand: (inout TemplateCompiler) throws -> Expression,
    signs: Set<String> = [],
    words: Set<String> = [],
    _ combine:
      @escaping (String, Expression, Expression, TemplateContext) throws ->
      TemplateValue
  ) throws -> Expression {
    var expression = try operand(&self)
    var count = 0
    while true {
      let found: String
      switch tokens.first {
      case .sign(let sign)? where signs.contains(sign): found = sign
      case .name(let word)? where words.contains(word): found = word
      default: return expression
      }
      tokens.removeFirst()
      count += 1
      guard count < Self.longestChain else { throw TemplateFailure.unsupported }
      let (left, right) = (expression, try operand(&self))
      expression = { context in
        try context.step()
        return try combine(found, left, right, context)
      }
    }
  }

  private mutating func signed(isFiltered: Bool) throws -> Expression {
    var expression: Expression
    if accept("-") {
      try descend()
      defer { depth -= 1 }
      if case .integer(let integer)? = tokens.first { literals.append(.integer(-integer)) }
      let inner = try signed(isFiltered: false)
      expression = { context in
        try TemplateValue.combined(.integer(0), "-", context.plain(inner(context)), context)
      }
    } else if accept("+") {
      expression = try signed(isFiltered: false)
    } else {
      expression = try postfix(primary())
    }
    while isFiltered {
      if accept("|") {
        expression = try filtered(expression)
      } else if accept(word: "is") {
        expression = try tested(expression)
      } else {
        break
      }
    }
    return expression
  }

  // MARK: - Members, filters and tests

  private mutating func postfix(_ first: @escaping Expression) throws -> Expression {
    var expression = first
    var count = 0
    while count < Self.longestChain {
      count += 1
      let object = expression
      if accept(".") {
        if case .integer(let index)? = tokens.first {
          tokens.removeFirst()
          expression = Self.member(of: object) { _ in .integer(index) }
          continue
        }
        let name = try self.name()
        guard accept("(") else {
          expression = Self.member(of: object) { _ in .text(name) }
          continue
        }
        let known = facts.arguments
        let arguments = try self.arguments(until: ")")
        // The name of a member is no part of a report's text.
        if name == "get" { facts.arguments = known }
        expression = { context in
          let values = try arguments.values(context)
          let found = try object(context)
          if case .report(let path) = found, name == "get", let key = values[0]?.json {
            let member = TemplateValue.report(path + [key])
            guard try context.isUndefined(member) else { return member }
            return values[1] ?? .none
          }
          return try context.plain(found).calling(name, values, context)
        }
      } else if accept("[") {
        expression = try subscripted(object)
      } else {
        break
      }
    }
    return expression
  }

  private static func member(of object: @escaping Expression, _ key: @escaping Expression)
    -> Expression
  {
    { context in
      let found = try object(context)
      let key = try context.plain(key(context))
      if case .report(let path) = found {
        switch key {
        case .text, .integer: return .report(path + [key.json ?? .null])
        default: throw TemplateFailure.failed
        }
      }
      return try found.element(key)
    }
  }

  private mutating func subscripted(_ object: @escaping Expression) throws
    -> Expression
  {
    var bounds: [Expression?] = []
    while true {
      let isOpen = tokens.first == .sign(":") || tokens.first == .sign("]")
      bounds.append(isOpen ? nil : try choice())
      guard accept(":") else { break }
    }
    guard accept("]"), bounds.count <= 2 else { throw TemplateFailure.unsupported }
    guard bounds.count == 2 else {
      guard let key = bounds[0] else { throw TemplateFailure.unsupported }
      return Self.member(of: object, key)
    }
    return { [bounds] context in
      let low = try bounds[0].map { bound in try bound(context) }
      let high = try bounds[1].map { bound in try bound(context) }
      return try context.plain(object(context)).sliced(low?.integer, high?.integer)
    }
  }

  private mutating func filtered(_ input: @escaping Expression) throws
    -> Expression
  {
    let name = try self.name()
    let arguments = accept("(") ? try self.arguments(until: ")") : TemplateArguments()
    return try Self.call(name, [input] + arguments.positional, arguments.named)
  }

  private static func call(
    _ name: String,
    _ positional: [Expression],
    _ named: [String: Expression]
  ) throws -> Expression {
    let arguments = TemplateArguments(positional: positional, named: named)
    // A missing part of the report must not count as read where it has a default.
    if name == "default" || name == "d" || name == "is_defined", let input = positional.first {
      return { context in
        let value = try input(context)
        if try context.isUndefined(value) {
          if name == "is_defined" { throw TemplateFailure.failed }
          return try arguments.values(context, after: 1)[1] ?? .text("")
        }
        guard arguments.positional.count > 2 || !named.isEmpty else { return value }
        let values = try arguments.values(context)
        let isAny = values.named("boolean", 2)?.isTrue ?? false
        guard let value = values[0], isAny, !value.isTrue else { return value }
        return values[1] ?? .text("")
      }
    }
    guard let function = TemplateFunctions.named(name) else { throw TemplateFailure.unsupported }
    return { context in
      try context.step()
      return try function(arguments.values(context), context)
    }
  }

  private mutating func tested(_ input: @escaping Expression) throws -> Expression {
    let isNegated = accept(word: "not")
    let name = try self.name()
    var argument: Expression?
    let before = literals.count
    switch tokens.first {
    case .sign("(")?, .sign("[")?, .text?, .integer?, .number?: argument = try primary()
    default: break
    }
    facts.compared += literals[before...]
    if ["defined", "undefined"].contains(name) {
      return { context in
        let isDefined = try !context.isUndefined(input(context))
        return .boolean(isDefined == ((name == "defined") != isNegated))
      }
    }
    guard let test = TemplateFunctions.test(name) else { throw TemplateFailure.unsupported }
    return { [argument] context in
      let value = try context.plain(input(context))
      let other = try argument.map { other in try other(context) }
      return .boolean(try test(value, other ?? .none) != isNegated)
    }
  }

  // MARK: - Operands

  private mutating func primary() throws -> Expression {
    try descend()
    defer { depth -= 1 }
    switch tokens.popFirst() {
    case .integer(let integer)?: return literal(.integer(integer))
    case .number(let number)?: return literal(.number(number))
    case .text(var text)?:
      while case .text(let more)? = tokens.first {
        tokens.removeFirst()
        text += more
      }
      return literal(.text(text))
    case .name(let name)?: return try named(name)
    case .sign("(")?:
      let inner = try arguments(until: ")")
      guard inner.named.isEmpty else { throw TemplateFailure.unsupported }
      if inner.positional.count == 1, !inner.hasComma { return inner.positional[0] }
      return { context in .list(try inner.values(context).all) }
    case .sign("[")?:
      let elements = try arguments(until: "]")
      facts.longestList = max(facts.longestList, elements.positional.count)
      return { context in .list(try elements.values(context).all) }
    case .sign("{")?: return try table()
    default: throw TemplateFailure.unsupported
    }
  }

  private mutating func literal(_ value: TemplateValue) -> Expression {
    literals.append(value)
    return { _ in value }
  }

  private mutating func named(_ name: String) throws -> Expression {
    switch name {
    case "true", "True": return literal(.boolean(true))
    case "false", "False": return literal(.boolean(false))
    case "none", "None", "null": return literal(.none)
    case "value" where tokens.starts(with: [.sign("|"), .name("from_json")]):
      tokens.removeFirst(2)
      return { context in context.variable("value_json") }
    default: break
    }
    guard accept("(") else { return { context in context.variable(name) } }
    let arguments = try self.arguments(until: ")")
    if name == "namespace" || name == "dict" {
      return { context in
        let named = try arguments.values(context).named
        return .table(named.map { (key: .text($0.key), value: $0.value) })
      }
    }
    return try Self.call(name, arguments.positional, arguments.named)
  }

  private mutating func table() throws -> Expression {
    var entries: [(key: Expression, value: Expression)] = []
    while !accept("}") {
      if !entries.isEmpty, !accept(",") { throw TemplateFailure.unsupported }
      if accept("}") { break }
      let before = literals.count
      let key = try choice()
      facts.compared += literals[before...]
      guard accept(":") else { throw TemplateFailure.unsupported }
      entries.append((key, try choice()))
    }
    return { [entries] context in
      var values: [(key: TemplateValue, value: TemplateValue)] = []
      for entry in entries {
        try context.step()
        try values.append((context.plain(entry.key(context)), context.plain(entry.value(context))))
      }
      return .table(values)
    }
  }

  private mutating func arguments(until end: String) throws -> TemplateArguments {
    var arguments = TemplateArguments()
    let before = literals.count
    while !accept(end) {
      if !arguments.isEmpty {
        guard accept(",") else { throw TemplateFailure.unsupported }
        arguments.hasComma = true
        if accept(end) { break }
      }
      if case .name(let name)? = tokens.first, tokens.dropFirst().first == .sign("=") {
        tokens.removeFirst(2)
        arguments.named[name] = try choice()
      } else {
        arguments.positional.append(try choice())
      }
    }
    if end == ")" { facts.arguments += literals[before...].compactMap(\.text) }
    return arguments
  }

  private mutating func name() throws -> String {
    guard case .name(let name)? = tokens.popFirst() else { throw TemplateFailure.unsupported }
    return name
  }

  private mutating func accept(_ sign: String) -> Bool {
    guard tokens.first == .sign(sign) else { return false }
    tokens.removeFirst()
    return true
  }

  private mutating func accept(word: String) -> Bool {
    guard tokens.first == .name(word) else { return false }
    tokens.removeFirst()
    return true
  }
}

/// The arguments of a filter, function or method.
struct TemplateArguments {
  var positional: [Template.Expression] = []
  var named: [String: Template.Expression] = [:]
  var hasComma = false

  var isEmpty: Bool { positional.isEmpty && named.isEmpty }

  struct Values {
    var all: [TemplateValue] = []
    var named: [String: TemplateValue] = [:]

    subscript(index: Int) -> TemplateValue? { index < all.count ? all[index] : nil }

    /// An argument that is given by its name or its place.
    func named(_ name: String, _ index: Int) -> TemplateValue? { named[name] ?? self[index] }
  }

  /// Evaluates the arguments; those before `start` are undefined.
  func values(_ context: TemplateContext, after start: Int = 0) throws -> Values {
    var values = Values(all: Array(repeating: .undefined, count: min(start, positional.count)))
    for argument in positional.dropFirst(start) {
      try context.step()
      values.all.append(try context.plain(argument(context)))
    }
    for (name, argument) in named { values.named[name] = try context.plain(argument(context)) }
    return values
  }
}

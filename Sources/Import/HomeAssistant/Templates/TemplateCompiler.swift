// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// Turns the pieces of a template into closures that evaluate it.
struct TemplateCompiler {
  typealias Expression = Template.Expression
  typealias Statement = Template.Statement

  /// The longest chain of operators of one kind, each of which is a call inside of the next.
  static let longestChain = 100

  var facts = Template.Facts()
  /// The expression of a template that has nothing else.
  private(set) var onlyExpression: Expression?
  private var pieces: ArraySlice<TemplatePiece>
  var tokens: ArraySlice<TemplateToken> = []
  var depth = 0
  var literals: [TemplateValue] = []

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
  mutating func block(until ends: Set<String>) throws -> Statement {
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

  mutating func statement(_ word: String, _ rest: ArraySlice<TemplateToken>)
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

  mutating func conditional() throws -> Statement {
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

  mutating func loop() throws -> Statement {
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

  mutating func whole(_ tokens: [TemplateToken]) throws -> Expression {
    self.tokens = tokens[...]
    let expression = try choice()
    guard self.tokens.isEmpty else { throw TemplateFailure.unsupported }
    return expression
  }

  mutating func descend() throws {
    depth += 1
    guard depth <= Template.deepest else { throw TemplateFailure.unsupported }
  }

  /// Reads `A if B else C`.
  mutating func choice() throws -> Expression {
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

  mutating func either() throws -> Expression {
    try logic("or", endsWith: true) { parser in
      try parser.logic("and", endsWith: false) { parser in try parser.negation() }
    }
  }

  /// Reads operands of which the first with this truth is the result, or else the last.
  mutating func logic(
    _ word: String,
    endsWith truth: Bool,
    _ operand: (inout TemplateCompiler) throws -> Expression
  ) throws -> Expression {
    try chain(operand, words: [word]) { _, left, right, context in
      let value = try context.plain(left(context))
      return try value.isTrue == truth ? value : context.plain(right(context))
    }
  }

  mutating func negation() throws -> Expression {
    guard accept(word: "not") else { return try comparison() }
    try descend()
    defer { depth -= 1 }
    let inner = try negation()
    return { context in
      .boolean(try !context.plain(inner(context)).isTrue)
    }
  }

  mutating func comparison() throws -> Expression {
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

  mutating func comparator() -> String? {
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

  mutating func sum() throws -> Expression {
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

  mutating func arithmetic(
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
  mutating func chain(
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

  mutating func signed(isFiltered: Bool) throws -> Expression {
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
}

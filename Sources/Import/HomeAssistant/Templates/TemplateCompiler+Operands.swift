// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// Operands, their members, filters and tests.
extension TemplateCompiler {
  mutating func postfix(_ first: @escaping Expression) throws -> Expression {
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

  mutating func subscripted(_ object: @escaping Expression) throws -> Expression {
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

  mutating func filtered(_ input: @escaping Expression) throws -> Expression {
    let name = try self.name()
    var arguments = accept("(") ? try self.arguments(until: ")") : TemplateArguments()
    arguments.positional.insert(input, at: 0)
    return try Self.call(name, arguments)
  }

  private static func call(_ name: String, _ arguments: TemplateArguments) throws -> Expression {
    // A missing part of the report must not count as read where it has a default.
    let hasDefault = name == "default" || name == "d" || name == "is_defined"
    if hasDefault, let input = arguments.positional.first {
      return { context in
        let value = try input(context)
        if try context.isUndefined(value) {
          if name == "is_defined" { throw TemplateFailure.failed }
          return try arguments.values(context, after: 1)[1] ?? .text("")
        }
        guard arguments.positional.count > 2 || !arguments.named.isEmpty else { return value }
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

  mutating func tested(_ input: @escaping Expression) throws -> Expression {
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

  mutating func primary() throws -> Expression {
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

  mutating func literal(_ value: TemplateValue) -> Expression {
    literals.append(value)
    if let text = value.text { facts.texts.append(text) }
    return { _ in value }
  }

  mutating func named(_ name: String) throws -> Expression {
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
    return try Self.call(name, arguments)
  }

  mutating func table() throws -> Expression {
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

  mutating func arguments(until end: String) throws -> TemplateArguments {
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

  mutating func name() throws -> String {
    guard case .name(let name)? = tokens.popFirst() else { throw TemplateFailure.unsupported }
    return name
  }

  mutating func accept(_ sign: String) -> Bool {
    guard tokens.first == .sign(sign) else { return false }
    tokens.removeFirst()
    return true
  }

  mutating func accept(word: String) -> Bool {
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

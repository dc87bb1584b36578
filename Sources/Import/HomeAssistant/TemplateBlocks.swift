// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// A Home Assistant template as text, expressions, and choices between them.
///
/// Statements other than `{% if %}`, such as `{% set %}` and `{% for %}`, are not read.
struct TemplateBlocks: Hashable {
  indirect enum Node: Hashable {
    case text(String)
    /// What is between `{{` and `}}`.
    case expression(String)
    /// `{% if %}` with its branches in order.
    case choice([Branch])
  }

  struct Branch: Hashable {
    /// `nil` for `{% else %}`.
    var condition: String?
    var nodes: [Node]
  }

  private enum Token: Hashable {
    case text(String)
    case expression(String)
    case statement(String)
  }

  /// The maximum length of a template, in bytes, and the maximum depth of its choices.
  private static let longest = 4096
  private static let deepest = 8

  private(set) var nodes: [Node] = []

  init(_ nodes: [Node]) { self.nodes = nodes }

  /// Reads a template; `nil` if it has another statement, or one that does not end.
  init?(_ template: String) {
    guard template.utf8.count <= Self.longest, let tokens = Self.tokens(of: template) else {
      return nil
    }
    var rest = tokens[...]
    guard let nodes = Self.nodes(&rest, depth: 0), rest.isEmpty else { return nil }
    self.nodes = nodes
  }

  /// Its only choice, if it consists of one with plain words, and the words of each branch.
  var words: [(condition: String?, word: String)]? {
    let solid = nodes.filter { node in
      if case .text(let text) = node { !text.trimmedSpace.isEmpty } else { true }
    }
    guard solid.count == 1, case .choice(let branches) = solid[0] else { return nil }
    let words = branches.compactMap { branch -> (condition: String?, word: String)? in
      guard branch.nodes.count == 1, case .text(let text) = branch.nodes[0] else { return nil }
      return (branch.condition, text.trimmedSpace)
    }
    return words.count == branches.count ? words : nil
  }

  // MARK: - Defined variables

  /// What remains where exactly `defined` of all `variables` are defined; `nil` if a condition is
  /// not about that.
  func resolved(defined: Set<String>, of variables: Set<String>) -> TemplateBlocks? {
    var remaining: [Node] = []
    for node in nodes {
      guard case .choice(let branches) = node else {
        remaining.append(node)
        continue
      }
      for branch in branches {
        if let condition = branch.condition {
          guard let isTrue = Self.isTrue(condition, defined, variables) else { return nil }
          if !isTrue { continue }
        }
        let inner = TemplateBlocks(branch.nodes).resolved(defined: defined, of: variables)
        guard let inner else { return nil }
        remaining += inner.nodes
        break
      }
    }
    return TemplateBlocks(remaining)
  }

  /// Whether a condition such as `brightness is defined and red is undefined` is true.
  private static func isTrue(
    _ condition: String,
    _ defined: Set<String>,
    _ variables: Set<String>
  ) -> Bool? {
    let words = condition.split(whereSeparator: \.isWhitespace).map { String($0) }
    var isAny = false
    for alternative in words.split(separator: "or", omittingEmptySubsequences: false) {
      var isAll = true
      for term in alternative.split(separator: "and", omittingEmptySubsequences: false) {
        var term = Array(term)
        var isNegated = false
        if term.first == "not" { (isNegated, term) = (true, Array(term.dropFirst())) }
        guard let name = term.first, variables.contains(name) else { return nil }
        switch Array(term.dropFirst()) {
        case [], ["is", "defined"]: break
        case ["is", "undefined"], ["is", "not", "defined"]: isNegated.toggle()
        default: return nil
        }
        isAll = isAll && defined.contains(name) != isNegated
      }
      isAny = isAny || isAll
    }
    return isAny
  }

  // MARK: - Reading

  private static func nodes(_ rest: inout ArraySlice<Token>, depth: Int) -> [Node]? {
    var nodes: [Node] = []
    while let token = rest.first {
      switch token {
      case .text(let text):
        rest.removeFirst()
        if case .text(let before)? = nodes.last {
          nodes[nodes.count - 1] = .text(before + text)
        } else if !text.isEmpty {
          nodes.append(.text(text))
        }
      case .expression(let text):
        rest.removeFirst()
        nodes.append(.expression(text))
      case .statement(let text):
        guard text.hasPrefix("if ") else { return depth > 0 ? nodes : nil }
        rest.removeFirst()
        guard depth < deepest, let branches = branches(&rest, first: text, depth) else {
          return nil
        }
        nodes.append(.choice(branches))
      }
    }
    return depth == 0 ? nodes : nil
  }

  private static func branches(
    _ rest: inout ArraySlice<Token>,
    first: String,
    _ depth: Int
  ) -> [Branch]? {
    var branches: [Branch] = []
    var condition: String? = String(first.dropFirst("if ".count))
    while let nodes = nodes(&rest, depth: depth + 1) {
      branches.append(Branch(condition: condition, nodes: nodes))
      guard case .statement(let text)? = rest.popFirst() else { return nil }
      if text == "endif" { return branches }
      guard condition != nil else { return nil }
      if text == "else" {
        condition = nil
      } else if text.hasPrefix("elif ") {
        condition = String(text.dropFirst("elif ".count))
      } else {
        return nil
      }
    }
    return nil
  }

  private static func tokens(of template: String) -> [Token]? {
    var tokens: [Token] = []
    var rest = template[...]
    var trimsNext = false
    func text(_ part: Substring, trimsEnd: Bool) -> Token {
      var text = String(part)
      if trimsNext { text = String(text.drop(while: \.isWhitespace)) }
      if trimsEnd { while text.last?.isWhitespace == true { text.removeLast() } }
      return .text(text)
    }
    while let start = rest.firstIndex(of: "{") {
      let next = rest.index(after: start)
      guard next < rest.endIndex else { break }
      let isExpression = rest[next] == "{"
      guard isExpression || rest[next] == "%" else {
        if rest[next] == "#" { return nil }
        tokens.append(text(rest[..<next], trimsEnd: false))
        trimsNext = false
        rest = rest[next...]
        continue
      }
      let body = rest[rest.index(after: next)...]
      guard let end = body.firstPlace(of: isExpression ? "}}" : "%}") else { return nil }
      var inner = body[..<end.lowerBound]
      tokens.append(text(rest[..<start], trimsEnd: inner.first == "-"))
      if inner.first == "-" { inner.removeFirst() }
      trimsNext = inner.last == "-"
      if trimsNext { inner.removeLast() }
      let content = inner.trimmedSpace
      tokens.append(isExpression ? .expression(content) : .statement(content))
      rest = body[end.upperBound...]
    }
    tokens.append(text(rest, trimsEnd: false))
    return tokens
  }
}

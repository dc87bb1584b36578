// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// One node of a YAML document.
///
/// An alias shares the node that it refers to.
final class YAMLNode: Sendable {
  enum Content: Sendable {
    /// `isPlain` is false for quoted text and block scalars.
    case scalar(String, isPlain: Bool)
    case sequence([YAMLNode])
    /// Entries in order, without duplicate keys.
    case mapping([Pair])
  }

  /// One entry of a mapping.
  struct Pair: Sendable {
    let key: String
    let keyPosition: SourcePosition
    let value: YAMLNode
  }

  let content: Content
  let position: SourcePosition

  init(_ content: Content, at position: SourcePosition) {
    self.content = content
    self.position = position
  }

  /// The entries, if this is a mapping.
  var pairs: [Pair]? {
    if case .mapping(let pairs) = content { pairs } else { nil }
  }

  /// The value of the entry called `key`; `nil` if there is none, or this is no mapping.
  subscript(key: String) -> YAMLNode? { pairs?.first { $0.key == key }?.value }

  /// The elements, if this is a sequence.
  var elements: [YAMLNode]? {
    if case .sequence(let elements) = content { elements } else { nil }
  }

  /// The text, if this is a scalar.
  var text: String? {
    if case .scalar(let text, _) = content { text } else { nil }
  }

  /// The text, if this is a scalar without quotes.
  var word: String? {
    if case .scalar(let text, isPlain: true) = content { text } else { nil }
  }

  /// Whether this is an empty plain scalar, `null` or `~`.
  var isNull: Bool {
    guard let word else { return false }
    return word.isEmpty || word == "null" || word == "~"
  }
}

/// A position in a file.
struct SourcePosition: Hashable, Sendable {
  var file: String
  /// Counted from one; 0 for a mistake that concerns all of the file.
  var line: Int
  /// In characters, counted from one; 0 without a line.
  var column: Int

  /// A file, folder or variable as a whole.
  static func whole(_ file: String) -> SourcePosition {
    SourcePosition(file: file, line: 0, column: 0)
  }

  /// `file:line:column`.
  var text: String { "\(file):\(line):\(column)" }
}

extension YAMLNode {
  /// The maximum number of values in one payload.
  private static let maximumValues = 10_000

  /// The node as JSON.
  ///
  /// Plain `true`, `false`, `null` and numbers are typed, anything else is text.
  ///
  /// Aliases are expanded. A structure that is too large is reported and gives `nil`. `name` and
  /// `scalar` can replace the name of a member and a scalar.
  func json(
    _ problems: Problems,
    scalar: (String, YAMLNode) -> JSONValue? = { _, _ in nil },
    name: (YAMLNode.Pair) -> String = { $0.key }
  ) -> JSONValue? {
    var budget = Self.maximumValues
    let value = json(&budget, name: name, scalar: scalar)
    guard budget >= 0 else {
      problems.add(position, "the payload holds more than \(Self.maximumValues) values")
      return nil
    }
    return value
  }

  private func json(
    _ budget: inout Int,
    name: (YAMLNode.Pair) -> String,
    scalar: (String, YAMLNode) -> JSONValue?
  ) -> JSONValue {
    budget -= 1
    guard budget >= 0 else { return .null }
    switch content {
    case .scalar(let text, let isPlain):
      return scalar(text, self) ?? (isPlain ? Self.typed(text) : .string(text))
    case .sequence(let elements):
      var values: [JSONValue] = []
      for element in elements where budget >= 0 {
        values.append(element.json(&budget, name: name, scalar: scalar))
      }
      return .array(values)
    case .mapping(let pairs):
      var members: [JSONValue.Member] = []
      for pair in pairs where budget >= 0 {
        members.append(.init(name(pair), pair.value.json(&budget, name: name, scalar: scalar)))
      }
      return .object(members)
    }
  }

  /// A scalar's JSON value, if this is a scalar.
  var scalarJSON: JSONValue? {
    guard case .scalar(let text, let isPlain) = content else { return nil }
    return isPlain ? Self.typed(text) : .string(text)
  }

  /// A plain scalar by YAML 1.2's core schema, limited to the forms that JSON has too.
  private static func typed(_ text: String) -> JSONValue {
    switch text {
    case "true": return .boolean(true)
    case "false": return .boolean(false)
    case "null", "~", "": return .null
    default: break
    }
    guard let first = text.utf8.first,
      first == 0x2D || first == 0x2B || first == 0x2E
        || (0x30...0x39).contains(first)
    else { return .string(text) }
    if let integer = Int64(text) { return .integer(integer) }
    return NumberText.parse(text).map { .number($0) } ?? .string(text)
  }
}

extension YAMLNode {
  /// The node with marks in place of placeholders, in all of its strings but the keys of sections.
  ///
  /// A node without placeholders stays itself.
  func marked() -> YAMLNode {
    switch content {
    case .scalar(let text, let isPlain):
      let marked = TemplateMark.marked(text)
      return marked == text ? self : YAMLNode(.scalar(marked, isPlain: isPlain), at: position)
    case .sequence(let elements):
      let marked = elements.map { $0.marked() }
      let isSame = zip(marked, elements).allSatisfy { $0 === $1 }
      return isSame ? self : YAMLNode(.sequence(marked), at: position)
    case .mapping(let pairs):
      let marked = pairs.map { pair in
        Pair(
          key: TemplateMark.marked(pair.key),
          keyPosition: pair.keyPosition,
          value: pair.value.marked()
        )
      }
      let isSame = zip(marked, pairs).allSatisfy { $0.key == $1.key && $0.value === $1.value }
      return isSame ? self : YAMLNode(.mapping(marked), at: position)
    }
  }

  /// The first mark in any string that `isWrong`, with its position.
  func firstMark(where isWrong: (Int) -> Bool) -> (number: Int, position: SourcePosition)? {
    switch content {
    case .scalar(let text, _):
      return TemplateMark.numbers(in: text).sorted().first(where: isWrong).map { ($0, position) }
    case .sequence(let elements):
      for element in elements {
        if let found = element.firstMark(where: isWrong) { return found }
      }
      return nil
    case .mapping(let pairs):
      for pair in pairs {
        if let number = TemplateMark.numbers(in: pair.key).sorted().first(where: isWrong) {
          return (number, pair.keyPosition)
        }
        if let found = pair.value.firstMark(where: isWrong) { return found }
      }
      return nil
    }
  }
}

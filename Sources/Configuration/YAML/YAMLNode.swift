// Settle
// SPDX-License-Identifier: Apache-2.0

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

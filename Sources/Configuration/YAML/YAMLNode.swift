// Settle
// SPDX-License-Identifier: Apache-2.0

/// One node of a YAML document; aliases share the node they refer to.
final class YAMLNode: Sendable {
  enum Content: Sendable {
    /// `isPlain`: written without quotes, and not as a block.
    case scalar(String, isPlain: Bool)
    case sequence([YAMLNode])
    /// In order; duplicates are gone.
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

  /// Whether nothing is written here, or `null` or `~`.
  var isNull: Bool {
    guard let word else { return false }
    return word.isEmpty || word == "null" || word == "~"
  }
}

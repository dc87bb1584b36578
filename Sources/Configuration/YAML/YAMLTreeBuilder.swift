// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// Builds nodes from the parser's events, without recursion.
struct YAMLTreeBuilder {
  /// An open sequence or mapping.
  private struct Container {
    let isMapping: Bool
    let anchor: String?
    let position: SourcePosition
    var elements: [YAMLNode] = []
    var pairs: [YAMLNode.Pair] = []
    /// The key whose value comes next.
    var key: (text: String, position: SourcePosition)?
    /// The keys so far.
    var names: Set<String> = []
    /// Mappings from `<<`, which the mapping's own entries override.
    var merged: [YAMLNode] = []
  }

  /// The maximum number of entries that `<<` may add in one file.
  private static let maximumMerged = 200_000

  /// The finished document.
  private(set) var root: YAMLNode?
  /// The position of the last event that has one, counted from one.
  private(set) var lastMark = (line: 1, column: 1)

  private let file: String
  private let problems: Problems
  private var stack: [Container] = []
  private var anchors: [String: YAMLNode] = [:]
  private var documents = 0
  private var mergedCount = 0

  init(file: String, problems: Problems) {
    self.file = file
    self.problems = problems
  }

  /// Starts a document; a second one is a mistake.
  mutating func beginDocument(at mark: (line: Int, column: Int)) -> Bool {
    documents += 1
    guard documents > 1 else { return true }
    problems.add(
      position(mark),
      "a second document starts here; a file holds one (remove the '---')"
    )
    return false
  }

  mutating func scalar(
    _ text: String,
    isPlain: Bool,
    anchor: String?,
    tag: String?,
    at mark: (line: Int, column: Int)
  ) -> Bool {
    check(tag, at: mark)
    lastMark = mark
    return add(YAMLNode(.scalar(text, isPlain: isPlain), at: position(mark)), anchor: anchor)
  }

  mutating func alias(_ name: String, at mark: (line: Int, column: Int)) -> Bool {
    lastMark = mark
    if let node = anchors[name] { return add(node, anchor: nil) }
    let isOpen = stack.contains { $0.anchor == name }
    problems.add(
      position(mark),
      isOpen
        ? "alias '*\(Excerpt.of(name))' refers to a value that contains it"
        : "no anchor '&\(Excerpt.of(name))' before this alias",
      suggestion: Suggestion.nearest(to: name, in: anchors.keys.sorted()).map { "*\($0)" }
    )
    problems.block(position(mark))
    return add(YAMLNode(.scalar("", isPlain: true), at: position(mark)), anchor: nil)
  }

  mutating func open(
    isMapping: Bool,
    anchor: String?,
    tag: String?,
    at mark: (line: Int, column: Int)
  ) -> Bool {
    check(tag, at: mark)
    lastMark = mark
    guard stack.count < YAMLReader.maximumDepth else {
      problems.add(position(mark), "nested deeper than \(YAMLReader.maximumDepth) levels")
      abandonUnfinished()
      return false
    }
    stack.append(Container(isMapping: isMapping, anchor: anchor, position: position(mark)))
    return true
  }

  mutating func close() -> Bool {
    guard let container = stack.popLast() else { return false }
    return add(finished(container), anchor: container.anchor)
  }

  /// Ends the document after a syntax error, without the top-level entry that contains the error.
  ///
  /// An error behind a finished entry may belong to it, as where its next line is not indented.
  mutating func abandonUnfinished() {
    guard root == nil, var outermost = stack.first, outermost.isMapping else { return }
    if stack.count == 1, outermost.key == nil, !outermost.pairs.isEmpty {
      outermost.pairs.removeLast()
    }
    root = finished(outermost)
    stack = []
  }

  private mutating func finished(_ container: Container) -> YAMLNode {
    guard container.isMapping else {
      return YAMLNode(.sequence(container.elements), at: container.position)
    }
    var pairs = container.pairs
    if !container.merged.isEmpty {
      var names = Set(pairs.map(\.key))
      for mapping in container.merged {
        for pair in mapping.pairs ?? [] {
          mergedCount += 1
          guard mergedCount <= Self.maximumMerged else {
            problems.add(container.position, "'<<' merges too many entries")
            return YAMLNode(.mapping(pairs), at: container.position)
          }
          if names.insert(pair.key).inserted { pairs.append(pair) }
        }
      }
    }
    return YAMLNode(.mapping(pairs), at: container.position)
  }

  /// Adds a finished node to the innermost open container.
  private mutating func add(_ node: YAMLNode, anchor: String?) -> Bool {
    if let anchor { anchors[anchor] = node }
    guard let last = stack.indices.last else {
      root = node
      return true
    }
    guard stack[last].isMapping else {
      stack[last].elements.append(node)
      return true
    }
    guard let key = stack[last].key else {
      setKey(node, in: last)
      return true
    }
    stack[last].key = nil
    if key.text == "<<" {
      merge(node, at: key.position, in: last)
    } else if isNew(key.text, at: key.position, in: last) {
      let pair = YAMLNode.Pair(key: key.text, keyPosition: key.position, value: node)
      stack[last].pairs.append(pair)
    }
    return true
  }

  private mutating func setKey(_ node: YAMLNode, in container: Int) {
    if let text = node.text {
      stack[container].key = (text, node.position)
    } else {
      problems.add(node.position, "a key must be a word, found \(node.kindDescription)")
      stack[container].key = ("", node.position)
    }
  }

  private mutating func merge(_ node: YAMLNode, at position: SourcePosition, in container: Int) {
    let mappings = node.elements ?? [node]
    guard mappings.allSatisfy({ $0.pairs != nil }) else {
      problems.add(position, "'<<' requires a mapping or a list of mappings")
      return
    }
    stack[container].merged += mappings
  }

  private mutating func isNew(
    _ key: String,
    at position: SourcePosition,
    in container: Int
  ) -> Bool {
    if stack[container].names.insert(key).inserted { return true }
    let first = stack[container].pairs.first { $0.key == key }?.keyPosition
    let hint = first.map { "; the first is in line \($0.line)" } ?? ""
    problems.add(position, "key '\(Excerpt.of(key))' appears twice\(hint)")
    return false
  }

  private func check(_ tag: String?, at mark: (line: Int, column: Int)) {
    guard let tag, !tag.hasPrefix("tag:yaml.org,2002:") else { return }
    problems.add(position(mark), "tags such as '\(Excerpt.of(tag))' have no meaning here")
    problems.block(position(mark))
  }

  private func position(_ mark: (line: Int, column: Int)) -> SourcePosition {
    SourcePosition(file: file, line: mark.line, column: mark.column)
  }
}

extension YAMLNode {
  /// A description for messages: a short text, or the kind of node.
  var kindDescription: String {
    switch content {
    case .scalar(let text, let isPlain):
      if isNull || text.isEmpty {
        isNull ? "nothing" : "an empty text"
      } else {
        isPlain ? "'\(Excerpt.of(text))'" : "the text '\(Excerpt.of(text))'"
      }
    case .sequence: "a list"
    case .mapping: "a mapping"
    }
  }
}

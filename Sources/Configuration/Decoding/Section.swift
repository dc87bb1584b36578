// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

/// A mapping with known keys, or several laid over each other, the strongest first.
///
/// Each read of a value reports what is wrong with it and gives `nil`; an absent key is `nil` too.
struct Section {
  let table: KeyTable
  /// Mappings; the first that has a key decides it.
  let layers: [YAMLNode]
  let problems: Problems

  /// A section from one node; reports anything but a mapping, and unknown keys.
  init?(_ node: YAMLNode, _ table: KeyTable, _ problems: Problems, what: String? = nil) {
    guard let pairs = node.pairs else {
      let name = what ?? table.rawValue
      problems.add(
        node.position,
        "\(name): found \(node.kindInWords), expected a mapping with \(Self.list(table.keys))"
      )
      return nil
    }
    Self.checkKeys(pairs, table, problems)
    self.table = table
    layers = [node]
    self.problems = problems
  }

  /// A section from mappings that were checked before.
  init(layers: [YAMLNode], _ table: KeyTable, _ problems: Problems) {
    self.table = table
    self.layers = layers
    self.problems = problems
  }

  /// Where the section begins.
  var position: SourcePosition { layers[0].position }

  /// The value of `key` in the strongest layer that has it.
  subscript(key: String) -> YAMLNode? {
    precondition(table.contains(key), "A key that is read is in the table of keys.")
    for layer in layers {
      if let pair = layer.pairs?.first(where: { $0.key == key }) { return pair.value }
    }
    return nil
  }

  /// The values of `key` in all layers, the strongest first.
  func all(_ key: String) -> [YAMLNode] {
    precondition(table.contains(key), "A key that is read is in the table of keys.")
    return layers.compactMap { layer in layer.pairs?.first { $0.key == key }?.value }
  }

  /// The section at `key`, fields of the strongest layers first; layers end at what is no mapping.
  ///
  /// `nil` when absent; a strongest value that is no mapping is reported.
  func nested(_ key: String, _ table: KeyTable) -> Section? {
    let nodes = all(key)
    guard let first = nodes.first else { return nil }
    guard first.pairs != nil else {
      _ = Section(first, table, problems, what: key)
      return nil
    }
    let mappings = Array(nodes.prefix { $0.pairs != nil })
    for mapping in mappings { Self.checkKeys(mapping.pairs ?? [], table, problems) }
    return Section(layers: mappings, table, problems)
  }

  /// Reports that a key is missing, at the section's beginning.
  func missing(_ key: String, _ reason: String) {
    problems.add(position, "'\(key)' is missing: \(reason)")
  }

  static func checkKeys(_ pairs: [YAMLNode.Pair], _ table: KeyTable, _ problems: Problems) {
    for pair in pairs where !table.contains(pair.key) && problems.isNewKey(pair.keyPosition) {
      problems.add(
        pair.keyPosition,
        "unknown key '\(Excerpt.of(pair.key))'; allowed: \(list(table.keys))",
        suggestion: Suggestion.nearest(to: pair.key, in: table.keys)
      )
    }
  }

  /// Words in a row, for messages.
  static func list(_ words: [String]) -> String { words.joined(separator: ", ") }
}

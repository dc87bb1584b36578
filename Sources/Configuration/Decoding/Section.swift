// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Values

/// A mapping with known keys, or several such mappings as layers.
///
/// Reading an invalid value reports the mistake and returns `nil`; so does an absent key, silently.
struct Section {
  let table: KeyTable
  /// Mappings with the strongest first; the first that has a key provides its value.
  let layers: [YAMLNode]
  let problems: Problems

  /// Creates a section from one node; reports unknown keys and nodes other than mappings.
  init?(_ node: YAMLNode, _ table: KeyTable, _ problems: Problems, what: String? = nil) {
    guard let pairs = node.pairs else {
      let name = what ?? table.rawValue
      problems.add(
        node.position,
        "\(name): found \(node.kindDescription), expected a mapping with \(Self.list(table.keys))"
      )
      return nil
    }
    Self.checkKeys(pairs, table, problems)
    self.table = table
    layers = [node]
    self.problems = problems
  }

  /// Creates a section from mappings that are already checked.
  init(layers: [YAMLNode], _ table: KeyTable, _ problems: Problems) {
    self.table = table
    self.layers = layers
    self.problems = problems
  }

  /// The start of the strongest layer.
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

  /// The section at `key`, with a layer from each layer of this one.
  ///
  /// A value that is not a mapping ends the layers. Returns `nil` when the key is absent, and reports
  /// a mistake when its strongest value is not a mapping.
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

  /// Reports a missing key at the start of the section.
  ///
  /// Where an unknown key probably means it, that is reported already.
  func missing(_ key: String, _ reason: String) {
    guard !hasMisspelled(key) else { return }
    problems.add(position, "'\(key)' is missing: \(reason)")
  }

  /// Whether an unknown key of the section, which is reported, probably means `key`.
  func hasMisspelled(_ key: String) -> Bool {
    layers.contains { layer in
      layer.pairs?.contains { pair in
        !table.contains(pair.key) && Synonyms.nearest(to: pair.key, in: table.keys) == key
      } ?? false
    }
  }

  static func checkKeys(_ pairs: [YAMLNode.Pair], _ table: KeyTable, _ problems: Problems) {
    for pair in pairs where !table.contains(pair.key) && problems.isNewKey(pair.keyPosition) {
      problems.add(
        pair.keyPosition,
        "unknown key '\(Excerpt.of(pair.key))'; allowed: \(list(table.keys))",
        suggestion: Synonyms.nearest(to: pair.key, in: table.keys)
      )
    }
  }

  /// A comma-separated list for messages.
  static func list(_ words: [String]) -> String { words.joined(separator: ", ") }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
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
    self.init(checking: [node], table, problems, what: what)
  }

  /// Creates a section from nodes, the strongest first; a value that is not a mapping ends them.
  ///
  /// Reports unknown keys, and a strongest value that is not a mapping; without one, it is `nil`.
  init?(
    checking nodes: [YAMLNode],
    _ table: KeyTable,
    _ problems: Problems,
    what: String? = nil
  ) {
    guard let first = nodes.first else { return nil }
    guard first.pairs != nil else {
      let expected = "a mapping with \(Self.list(table.keys))"
      problems.add(first, what ?? table.rawValue, expected: expected)
      return nil
    }
    let mappings = Array(nodes.prefix { $0.pairs != nil })
    for mapping in mappings { Self.checkKeys(mapping.pairs ?? [], table, problems) }
    self.init(layers: mappings, table, problems)
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
    return layers.lazy.compactMap { $0[key] }.first
  }

  /// The values of `key` in all layers, the strongest first.
  func all(_ key: String) -> [YAMLNode] {
    precondition(table.contains(key), "A key that is read is in the table of keys.")
    return layers.compactMap { $0[key] }
  }

  /// The section at `key`, with a layer from each layer of this one.
  ///
  /// A value that is not a mapping ends the layers. Returns `nil` when the key is absent, and
  /// reports a mistake when its strongest value is not a mapping.
  func nested(_ key: String, _ table: KeyTable) -> Section? {
    Section(checking: all(key), table, problems, what: key)
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

extension Section {
  /// A non-empty scalar, quoted or not.
  func text(_ key: String, expected: String = "text") -> String? {
    guard let node = self[key] else { return nil }
    guard let text = node.text, !text.isEmpty, !node.isNull else {
      return reject(node, key, expected: expected)
    }
    return text
  }

  /// Exactly `true` or `false`.
  func flag(_ key: String) -> Bool? {
    guard let node = self[key] else { return nil }
    switch node.word {
    case "true": return true
    case "false": return false
    default:
      let meant: String? =
        switch node.text?.lowercased() {
        case "true", "yes", "on", "1", "y": "true"
        case "false", "no", "off", "0", "n": "false"
        default: nil
        }
      return reject(node, key, expected: "true or false", suggestion: meant)
    }
  }

  /// One of `words`.
  func choice(_ key: String, of words: [String]) -> String? {
    guard let node = self[key] else { return nil }
    if let text = node.text, words.contains(text) { return text }
    return reject(
      node,
      key,
      expected: words.count == 1 ? words[0] : "one of \(Self.list(words))",
      suggestion: node.text.flatMap { Synonyms.nearest(to: $0, in: words) }
    )
  }

  /// A finite number without quotes.
  func number(_ key: String) -> Double? { self[key].flatMap { number($0, key) } }

  /// A finite number at `node`; messages name `key`.
  func number(_ node: YAMLNode, _ key: String) -> Double? {
    if let word = node.word, let number = NumberText.parse(word) { return number }
    var meant: String?
    if let text = node.text {
      let candidate = String(text.map { $0 == "," ? "." : $0 })
      if NumberText.parse(candidate) != nil { meant = candidate }
    }
    return reject(node, key, expected: "a number", suggestion: meant)
  }

  /// A number that is allowed; any other is reported with what is expected.
  func number(_ key: String, expected: String, where isAllowed: (Double) -> Bool) -> Double? {
    guard let node = self[key], let number = number(node, key) else { return nil }
    if isAllowed(number) { return number }
    return reject(node, key, expected: expected)
  }

  /// A whole number within `range`.
  func integer(_ key: String, in range: ClosedRange<Int>) -> Int? {
    guard let node = self[key] else { return nil }
    guard let word = node.word, let number = Int(word), range.contains(number) else {
      let expected = "a whole number from \(range.lowerBound) to \(range.upperBound)"
      return reject(node, key, expected: expected)
    }
    return number
  }

  /// A duration with a unit.
  func duration(_ key: String) -> Duration? { self[key].flatMap { duration($0, key) } }

  /// A duration at `node`; messages name `key`.
  func duration(_ node: YAMLNode, _ key: String) -> Duration? {
    guard let text = node.text, let duration = DurationText.parse(text) else {
      return reject(
        node,
        key,
        expected: DurationText.forms,
        suggestion: node.text.flatMap { Self.durationSuggestion(for: $0, key) }
      )
    }
    return duration
  }

  /// Suggests a unit: milliseconds for large numbers at keys with short times, otherwise seconds.
  static func durationSuggestion(for text: String, _ key: String) -> String? {
    let isShort = ["delay", "max_wait", "min_interval", "word_delay", "commit"].contains(key)
    let isLarge = (NumberText.parse(text) ?? 0) >= 20
    return DurationText.suggestion(for: text, unit: isShort && isLarge ? "ms" : "s")
  }

  /// A duration of at least `least`.
  func duration(_ key: String, atLeast least: Duration) -> Duration? {
    guard let node = self[key], let duration = duration(node, key) else { return nil }
    guard duration >= least else {
      let expected = "a duration of at least \(DurationText.text(least))"
      return reject(node, key, expected: expected)
    }
    return duration
  }

  /// A size in bytes within `range`.
  func size(_ key: String, in range: ClosedRange<Int>) -> Int? {
    guard let node = self[key] else { return nil }
    guard let text = node.text, let size = SizeText.parse(text) else {
      return reject(
        node,
        key,
        expected: SizeText.forms,
        suggestion: node.text.flatMap { SizeText.suggestion(for: $0) }
      )
    }
    guard range.contains(size) else {
      let expected = "\(range.lowerBound) to \(range.upperBound) bytes"
      return reject(node, key, expected: expected)
    }
    return size
  }

  /// What `read` makes of the scalars of a list, or of one without a list; reports the others.
  func each<Element>(
    _ key: String,
    expected: String,
    _ read: (String) -> Element?
  ) -> [Element] {
    guard let node = self[key] else { return [] }
    return (node.elements ?? [node]).compactMap { element in
      element.text.flatMap(read) ?? reject(element, key, expected: expected)
    }
  }

  /// The elements of a list.
  func elements(_ key: String) -> [YAMLNode]? {
    guard let node = self[key] else { return nil }
    let suggestion = node.text.map { "[\(Excerpt.of($0))]" }
    return node.elements ?? reject(node, key, expected: "a list", suggestion: suggestion)
  }

  /// A list of distinct, non-empty scalars.
  func words(_ key: String) -> [(text: String, node: YAMLNode)]? {
    guard let elements = elements(key) else { return nil }
    var words: [(text: String, node: YAMLNode)] = []
    for element in elements {
      guard let text = element.text, !text.isEmpty else {
        problems.add(element, key, expected: "a word")
        continue
      }
      if words.contains(where: { $0.text == text }) {
        problems.add(element.position, "\(key): '\(Excerpt.of(text))' is listed twice")
      } else {
        words.append((text, element))
      }
    }
    return words
  }

  /// Reports an invalid value and returns `nil`.
  func reject<Result>(
    _ node: YAMLNode,
    _ key: String,
    expected: String,
    suggestion: String? = nil
  ) -> Result? {
    problems.add(node, key, expected: expected, suggestion: suggestion)
    return nil
  }
}

/// Words of other programs for keys and types of the files.
enum Synonyms {
  /// The allowed word that `word` probably means: a synonym, or the most similar one.
  static func nearest(to word: String, in allowed: [String]) -> String? {
    if let meant = meanings[word.lowercased()]?.first(where: { allowed.contains($0) }) {
      return meant
    }
    return Suggestion.nearest(to: word, in: allowed)
  }

  private static let meanings: [String: [String]] = [
    "float": ["number"], "double": ["number"], "decimal": ["number"], "real": ["number"],
    "int": ["integer"], "long": ["integer"],
    "bool": ["boolean"], "binary": ["boolean"], "switch": ["boolean"],
    "string": ["text"], "str": ["text"],
    "enum": ["choice"], "select": ["choice"], "option": ["choice"],
    "rgb": ["color"], "colour": ["color"],
    "button": ["action"], "trigger": ["action"],
    "host": ["url"], "hostname": ["url"], "port": ["url"], "server": ["url"], "broker": ["url"],
    "address": ["url"], "tls": ["url"], "ssl": ["url"],
    "user": ["username"], "login": ["username"], "password": ["password_file"],
    "pass": ["password_file"], "token": ["token_file"],
    "min": ["range"], "max": ["range"], "minimum": ["range"], "maximum": ["range"],
    "enum_values": ["values"], "options": ["values"], "choices": ["values"],
    "label": ["name"], "title": ["name"], "friendly_name": ["name"],
    "debounce": ["delay", "policy"], "timeout": ["within", "ttl"],
  ]
}

/// Collects the mistakes and warnings of all files.
final class Problems {
  /// The maximum number of mistakes to collect.
  private static let maximum = 1_000

  private(set) var errors: [ConfigurationProblem] = []
  private(set) var warnings: [ConfigurationProblem] = []
  /// Filters duplicates: a profile's mistake is found once for each device that uses it.
  private var seen: Set<ConfigurationProblem> = []
  private var unknownKeys: Set<SourcePosition> = []
  /// Positions where further mistakes are consequences of the first.
  private var blocked: Set<SourcePosition> = []
  private var order: [String: Int] = [:]

  /// The number of mistakes so far; compare before and after a step to see whether it failed.
  var count: Int { errors.count }

  func add(_ problem: ConfigurationProblem) {
    recordFile(problem.file)
    let position = SourcePosition(file: problem.file, line: problem.line, column: problem.column)
    guard !isFull, !blocked.contains(position), seen.insert(problem).inserted else { return }
    errors.append(problem)
    guard isFull else { return }
    var last = problem
    last.message = "more than \(Self.maximum) mistakes; the rest is not shown"
    last.suggestion = nil
    errors.append(last)
  }

  /// Whether an unknown key is seen for the first time; YAML aliases repeat the same key.
  func isNewKey(_ position: SourcePosition) -> Bool {
    !isFull && unknownKeys.insert(position).inserted
  }

  private var isFull: Bool { errors.count >= Self.maximum }

  /// Suppresses further mistakes at a position, because they would be consequences of the first.
  func block(_ position: SourcePosition) { blocked.insert(position) }

  func add(_ position: SourcePosition, _ message: String, suggestion: String? = nil) {
    add(ConfigurationProblem(position, message, suggestion))
  }

  /// Adds that the value of `name` is not what its place expects.
  func add(_ node: YAMLNode, _ name: String, expected: String, suggestion: String? = nil) {
    let message = "\(name): found \(node.kindDescription), expected \(expected)"
    add(node.position, message, suggestion: suggestion)
  }

  func warn(_ position: SourcePosition, _ message: String, suggestion: String? = nil) {
    let problem = ConfigurationProblem(position, message, suggestion)
    recordFile(problem.file)
    if seen.insert(problem).inserted { warnings.append(problem) }
  }

  /// Records the order in which files are read.
  func recordFile(_ file: String) {
    if order[file] == nil { order[file] = order.count }
  }

  /// Sorts by file in the order of reading, then by position.
  func sorted(_ problems: [ConfigurationProblem]) -> [ConfigurationProblem] {
    problems.sorted { left, right in
      (order[left.file] ?? 0, left.line, left.column, left.message)
        < (order[right.file] ?? 0, right.line, right.column, right.message)
    }
  }
}

extension ConfigurationProblem {
  /// A problem with the placeholders of a template as the file has them.
  fileprivate init(_ position: SourcePosition, _ message: String, _ suggestion: String?) {
    self.init(
      file: position.file,
      line: position.line,
      column: position.column,
      message: TemplateMark.unmarked(message),
      suggestion: suggestion.map { TemplateMark.unmarked($0) }
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

/// The meaning of a Home Assistant template, if a device file can express it.
enum TemplateForm: Hashable {
  /// A variable, or a member of it, times a factor plus an offset.
  case linear(path: [String], factor: Double, offset: Double)
  /// The entry of a table for a variable.
  case lookedUp(path: [String], [JSONValue.Member])
  /// A word where a variable equals a constant, and another word elsewhere.
  case condition(path: [String], equals: JSONValue, then: String, otherwise: String)
  /// A word where a variable is defined, and another word elsewhere.
  case presence(path: [String], then: String, otherwise: String)
  /// A structure that contains the value, times a factor plus an offset; `isText` if it is in
  /// quotes.
  case structure(JSONValue, isText: Bool, factor: Double = 1, offset: Double = 0)
  case number(Double)
  case text(String)
  case table([JSONValue.Member])

  /// The unchanged variable.
  static func plain(_ path: [String]) -> TemplateForm {
    .linear(path: path, factor: 1, offset: 0)
  }

  /// Reads a template that extracts a value from a payload; `nil` if it is too complex.
  static func reading(_ template: String) -> TemplateForm? {
    let variables: Set = ["value", "value_json"]
    if let whole = expression(template) { return TemplateParser.parse(whole, variables: variables) }
    return TemplateBlocks(template)?.words.flatMap { words(of: $0, variables) }
  }

  /// The meaning of `{% if A == 1 %}word{% elif A == 2 %}other{% else %}last{% endif %}`.
  ///
  /// With more than one comparison the last word, which any other report has, is left out.
  private static func words(
    of branches: [(condition: String?, word: String)],
    _ variables: Set<String>
  ) -> TemplateForm? {
    guard let last = branches.last, last.condition == nil else { return nil }
    var path: [String]?
    var table: [JSONValue.Member] = []
    let comparisons = branches.count { $0.condition.map { !isAbsence($0) } ?? false }
    for branch in branches.dropLast() {
      // What is said where nothing is reported is said of no report.
      if let text = branch.condition, isAbsence(text) { continue }
      guard let text = branch.condition,
        let condition = TemplateParser.condition(text, variables: variables),
        path == nil || path == condition.path
      else { return nil }
      path = condition.path
      if comparisons == 1 {
        return .condition(
          path: condition.path,
          equals: condition.constant,
          then: branch.word,
          otherwise: last.word
        )
      }
      guard let key = condition.constant.scalarText else { return nil }
      table.append(JSONValue.Member(key, .string(branch.word)))
    }
    return path.map { .lookedUp(path: $0, table) }
  }

  /// Whether a condition is that something is missing: `A is undefined or B is undefined`.
  private static func isAbsence(_ condition: String) -> Bool {
    let words = condition.split(whereSeparator: \.isWhitespace)
    return words.split(separator: "or").allSatisfy { $0.suffix(2) == ["is", "undefined"] }
  }

  /// Reads a template that creates a payload from `variables`; `nil` if it is too complex.
  static func making(_ template: String, of variables: Set<String>) -> TemplateForm? {
    if let whole = expression(template) {
      return TemplateParser.parse(whole, variables: variables)
    }
    return structure(template, variables)
  }

  /// The expression of a template that consists of one pair of double braces.
  private static func expression(_ template: String) -> String? {
    var text = template.trimmedSpace
    guard text.hasPrefix("{{"), text.hasSuffix("}}"), text.count >= 4 else { return nil }
    text = String(text.dropFirst(2).dropLast(2))
    if text.hasPrefix("-") { text.removeFirst() }
    if text.hasSuffix("-") { text.removeLast() }
    return text.has("{{") || text.has("{%") ? Optional.none : text
  }

  /// Reads a template that is JSON with expressions for the value.
  private static func structure(_ template: String, _ variables: Set<String>) -> TemplateForm? {
    guard template.utf8.count <= 4096, !template.has("{%") else { return nil }
    var text = ""
    var isText = false
    var scale: (factor: Double, offset: Double)?
    var rest = template[...]
    while let start = rest.firstPlace(of: "{{") {
      guard let end = rest[start.upperBound...].firstPlace(of: "}}") else { return nil }
      let inner = String(rest[start.upperBound..<end.lowerBound])
      guard
        case .linear([], let factor, let offset) = TemplateParser.parse(
          inner,
          variables: variables
        ), scale == nil || scale ?? (1, 0) == (factor, offset)
      else { return nil }
      scale = (factor, offset)
      text += rest[..<start.lowerBound]
      let isQuoted = text.last == "\"" && rest[end.upperBound...].first == "\""
      text += isQuoted ? PayloadTemplate.placeholder : "\"\(PayloadTemplate.placeholder)\""
      isText = isText || isQuoted
      rest = rest[end.upperBound...]
    }
    text += rest
    guard let json = Announcement(topic: "", text: text).parsed, json.members != nil else {
      return nil
    }
    let (factor, offset) = scale ?? (1, 0)
    return .structure(json, isText: isText, factor: factor, offset: offset)
  }
}

extension Announcement {
  fileprivate var parsed: JSONValue? { try? json().get() }
}

extension StringProtocol {
  /// The text without leading and trailing whitespace.
  var trimmedSpace: String {
    let isSpace = { (character: Character) in character.isWhitespace }
    return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
  }
}

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
  /// A structure that contains the value; `isText` if the value is in quotes.
  case structure(JSONValue, isText: Bool)
  case number(Double)
  case text(String)
  case table([JSONValue.Member])

  /// The unchanged variable.
  static func plain(_ path: [String]) -> TemplateForm {
    .linear(path: path, factor: 1, offset: 0)
  }

  /// Reads a template that extracts a value from a payload; `nil` if it is too complex.
  static func reading(_ template: String) -> TemplateForm? {
    expression(template).flatMap { TemplateParser.parse($0, variables: ["value", "value_json"]) }
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
    var rest = template[...]
    while let start = rest.firstPlace(of: "{{") {
      guard let end = rest[start.upperBound...].firstPlace(of: "}}") else { return nil }
      let inner = String(rest[start.upperBound..<end.lowerBound])
      guard TemplateParser.parse(inner, variables: variables) == .plain([]) else { return nil }
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
    return .structure(json, isText: isText)
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

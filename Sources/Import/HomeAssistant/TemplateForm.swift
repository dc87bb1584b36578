// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// What a Home Assistant template says, where that is one of the things that device files can say too.
enum TemplateForm: Hashable {
  /// A variable, or a member of it, times a factor plus an offset.
  case linear(path: [String], factor: Double, offset: Double)
  /// What a table has for a variable.
  case lookedUp(path: [String], [JSONValue.Member])
  /// A structure that carries the value, as text if it stands in quotes.
  case structure(JSONValue, isText: Bool)
  case number(Double)
  case text(String)
  case table([JSONValue.Member])

  /// The variable as it is.
  static func plain(_ path: [String]) -> TemplateForm {
    .linear(path: path, factor: 1, offset: 0)
  }

  /// Reads a template that finds a value in a payload; `nil` if it is more of a program than that.
  static func reading(_ template: String) -> TemplateForm? {
    expression(template).flatMap { TemplateParser.parse($0, variables: ["value", "value_json"]) }
  }

  /// Reads a template that makes a payload of `variable`.
  static func making(_ template: String, of variables: Set<String>) -> TemplateForm? {
    if let whole = expression(template) {
      return TemplateParser.parse(whole, variables: variables)
    }
    return structure(template, variables)
  }

  /// What stands between the only braces of a template that is nothing else.
  private static func expression(_ template: String) -> String? {
    var text = template.trimmedSpace
    guard text.hasPrefix("{{"), text.hasSuffix("}}"), text.count >= 4 else { return nil }
    text = String(text.dropFirst(2).dropLast(2))
    if text.hasPrefix("-") { text.removeFirst() }
    if text.hasSuffix("-") { text.removeLast() }
    return text.contains("{{") || text.contains("{%") ? Optional.none : text
  }

  /// JSON with holes for the value.
  private static func structure(_ template: String, _ variables: Set<String>) -> TemplateForm? {
    guard template.utf8.count <= 4096, !template.contains("{%") else { return nil }
    var text = ""
    var isText = false
    var rest = template[...]
    while let start = rest.firstRange(of: "{{") {
      guard let end = rest[start.upperBound...].firstRange(of: "}}") else { return nil }
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
  /// Without spaces and line ends around.
  var trimmedSpace: String {
    let isSpace = { (character: Character) in character.isWhitespace }
    return String(drop(while: isSpace).reversed().drop(while: isSpace).reversed())
  }
}

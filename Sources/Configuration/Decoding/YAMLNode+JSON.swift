// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

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

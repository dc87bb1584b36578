// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// What several payloads have in common, and the one scalar by which they differ.
struct PayloadShape {
  /// The common structure with `$value` in its place; `$value` alone for payloads that are no JSON.
  private(set) var structure: JSONValue = .string(PayloadTemplate.placeholder)
  /// What each payload has in its place.
  private(set) var values: [JSONValue] = []

  /// Compares payloads; `nil` if they differ in more than one scalar.
  ///
  /// Where several places have the same scalar, all of them become `$value`.
  init?(_ payloads: [String]) {
    guard Set(payloads).count > 1 else {
      values = payloads.map { .string($0) }
      return
    }
    let parsed = payloads.compactMap { Self.json($0) }
    guard parsed.count == payloads.count else {
      values = payloads.map { .string($0) }
      return
    }
    guard let merged = merge(parsed), !values.isEmpty else { return nil }
    structure = merged
  }

  /// A payload that is a JSON object or array.
  static func json(_ text: String) -> JSONValue? {
    guard text.hasPrefix("{") || text.hasPrefix("[") else { return nil }
    return try? Announcement(topic: "", text: text).json().get()
  }

  private mutating func merge(_ parts: [JSONValue]) -> JSONValue? {
    let first = parts[0]
    if parts.allSatisfy({ $0.isEquivalent(to: first) }) { return first.escaped }
    if let members = first.members {
      guard parts.allSatisfy({ $0.members?.map(\.name) == members.map(\.name) }) else { return nil }
      var merged: [JSONValue.Member] = []
      for place in members.indices {
        guard let value = merge(parts.compactMap { $0.members?[place].value }) else { return nil }
        merged.append(JSONValue.Member(members[place].name, value))
      }
      return .object(merged)
    }
    if let elements = first.elements {
      guard parts.allSatisfy({ $0.elements?.count == elements.count }) else { return nil }
      let merged = elements.indices.compactMap { place in
        merge(parts.compactMap { $0.elements?[place] })
      }
      return merged.count == elements.count ? .array(merged) : nil
    }
    guard parts.allSatisfy({ $0.scalarText != nil }), values.isEmpty || values == parts else {
      return nil
    }
    values = parts
    return .string(PayloadTemplate.placeholder)
  }
}

extension JSONValue {
  /// The value as a constant in a payload, where `$` begins a placeholder.
  var escaped: JSONValue { replacingTexts { .string(PlaceholderText.escaped($0)) } }

  /// A text as the scalar that is written in the same way: `3` for `"3"`, but not for `"03"`.
  var tidied: JSONValue {
    guard let text = string else { return self }
    if text == "true" || text == "false" { return .boolean(text == "true") }
    guard let number = NumberText.parse(text), NumberText.shortest(number) == text else {
      return self
    }
    return JSONValue(shortest: number)
  }
}

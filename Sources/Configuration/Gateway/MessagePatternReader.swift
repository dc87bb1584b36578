// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
import Routing
internal import Values

/// Reads `pass` and `urgent` of a route: payloads, members, and members with a value.
struct MessagePatternReader {
  /// A pattern and where it stands.
  typealias Entry = (pattern: MessagePattern, position: SourcePosition)

  let fields: Section

  /// The patterns of `key`; those that are also in `others`, or listed twice, are mistakes.
  func patterns(_ key: String, without others: [Entry] = []) -> [Entry] {
    guard let node = fields[key] else { return [] }
    guard let elements = node.elements else {
      let suggestion = node.text.map { "[\(Excerpt.of($0))]" }
      return fields.reject(node, key, expected: "a list", suggestion: suggestion) ?? []
    }
    var entries: [Entry] = []
    var seen: Set<MessagePattern> = []
    let others = Set(others.map(\.pattern))
    for element in elements {
      guard let pattern = pattern(element, key) else { continue }
      if seen.contains(pattern) {
        fields.problems.add(element.position, "\(key): \(Self.text(pattern)) is listed twice")
      } else if others.contains(pattern) {
        let message = "\(key): \(Self.text(pattern)) is in 'pass' too; it can be in one of them"
        fields.problems.add(element.position, message)
      } else {
        seen.insert(pattern)
        entries.append((pattern, element.position))
      }
    }
    return entries
  }

  private func pattern(_ element: YAMLNode, _ key: String) -> MessagePattern? {
    if let pair = element.pairs?.first, element.pairs?.count == 1 {
      guard let pointer = pointer(pair.key, pair.keyPosition, key) else { return nil }
      guard pair.value.text != nil, let value = pair.value.json(fields.problems) else {
        return fields.reject(pair.value, key, expected: "one text, number or boolean")
      }
      return .value(pointer, value)
    }
    guard let text = element.text, !text.isEmpty else {
      return fields.reject(
        element,
        key,
        expected: "a payload, a JSON Pointer, or one with a value such as {/state: STOP}"
      )
    }
    guard text.utf8.first == UInt8(ascii: "/") else { return .payload(Array(text.utf8)) }
    return pointer(text, element.position, key).map(MessagePattern.member)
  }

  private func pointer(_ text: String, _ position: SourcePosition, _ key: String) -> JSONPointer? {
    if !text.isEmpty, let pointer = JSONPointer(text) { return pointer }
    fields.problems.add(
      position,
      "\(key): '\(Excerpt.of(text))' is not a JSON Pointer, such as /state"
    )
    return nil
  }

  private static func text(_ pattern: MessagePattern) -> String {
    switch pattern {
    case .payload(let bytes): "'\(Excerpt.of(String(decoding: bytes, as: UTF8.self)))'"
    case .member(let pointer): "'\(Excerpt.of(pointer.text))'"
    case .value(let pointer, let value):
      "{\(Excerpt.of(pointer.text)): \(Excerpt.of(JSONWriter.text(value)))}"
    }
  }
}

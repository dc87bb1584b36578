// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// The one scalar by which two JSON objects of the same structure differ.
struct PayloadDifference {
  /// The structure, with `$value` in its place.
  private(set) var structure: JSONValue = .null
  private(set) var first: JSONValue = .null
  private(set) var second: JSONValue = .null
  private var count = 0

  /// Compares two payloads; `nil` if they are no such objects.
  init?(_ first: String, _ second: String) {
    guard let left = try? Announcement(topic: "", text: first).json().get(),
      let right = try? Announcement(topic: "", text: second).json().get(),
      left.members != nil, let found = compare(left, right), count == 1
    else { return nil }
    structure = found
  }

  private mutating func compare(_ left: JSONValue, _ right: JSONValue) -> JSONValue? {
    if let members = left.members, let others = right.members {
      guard members.map(\.name) == others.map(\.name) else { return nil }
      var merged: [JSONValue.Member] = []
      for (member, other) in zip(members, others) {
        guard let value = compare(member.value, other.value) else { return nil }
        merged.append(JSONValue.Member(member.name, value))
      }
      return .object(merged)
    }
    if left == right {
      guard let text = left.string else { return left }
      return .string(PlaceholderText.escaped(text))
    }
    guard left.isWord, right.isWord else { return nil }
    (first, second) = (left, right)
    count += 1
    return .string(PayloadTemplate.placeholder)
  }
}

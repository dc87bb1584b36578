// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
package import JSON

/// A command's payload: a JSON structure in which `$value` is replaced by the typed value.
///
/// Only whole strings are placeholders: `"$value"`, `"$value/r"` for a member of a color, and `"$id"`
/// for a message number that the device's reply repeats. A template that consists of `$value` alone
/// sends the bare value: text without quotes, numbers in their shortest form.
package struct PayloadTemplate: Hashable, Sendable {
  /// The placeholder of the value.
  package static let placeholder = "$value"
  /// The placeholder of the message number.
  package static let identity = "$id"

  private enum Placeholder: Hashable, Sendable {
    case value
    case part(JSONPointer)
    case identity
  }

  /// The structure as it was given.
  package let structure: JSONValue
  /// The bytes before, between and after the placeholders.
  private let segments: [[UInt8]]
  private let placeholders: [Placeholder]

  /// Whether the structure consists of `$value` alone.
  package let isBare: Bool

  /// Whether the payload is a JSON object, which merging requires.
  package var isObject: Bool {
    if case .object = structure { true } else { false }
  }

  /// Whether the payload contains the value.
  package var carriesValue: Bool { placeholders.contains { $0 != .identity } }

  /// The members of the value that the payload contains one by one.
  package var parts: [JSONPointer] {
    placeholders.compactMap { if case .part(let pointer) = $0 { pointer } else { nil } }
  }

  /// The member of the value that a string such as `$value/r` stands for; `nil` for any other string.
  package static func part(_ text: String) -> JSONPointer? {
    guard text.utf8.first == UInt8(ascii: "$"), text.hasPrefix("$value/") else { return nil }
    return JSONPointer(String(text.dropFirst(placeholder.utf8.count)))
  }

  /// Compiles a structure; a scalar `$value` sends the bare value.
  package init(_ structure: JSONValue) {
    self.structure = structure
    isBare = structure == .string(Self.placeholder)
    var segments: [[UInt8]] = [[]]
    var placeholders: [Placeholder] = []
    switch structure {
    case .string(Self.placeholder):
      segments.append([])
      placeholders.append(.value)
    case .string(let text): segments[0].append(contentsOf: text.utf8)
    case .null, .boolean, .integer, .number, .array, .object:
      Self.compile(structure, into: &segments, &placeholders)
    }
    self.segments = segments
    self.placeholders = placeholders
  }

  /// Appends the payload for one wire value in the message numbered `id`.
  package func render(_ wire: JSONValue, id: Int64 = 1, into output: inout [UInt8]) {
    if isBare {
      wire.appendBare(to: &output)
      return
    }
    output.append(contentsOf: segments[0])
    for (placeholder, segment) in zip(placeholders, segments.dropFirst()) {
      switch placeholder {
      case .value: JSONWriter.append(wire, to: &output)
      case .part(let pointer): JSONWriter.append(pointer.value(in: wire) ?? .null, to: &output)
      case .identity: JSONWriter.append(.integer(id), to: &output)
      }
      output.append(contentsOf: segment)
    }
  }

  /// Appends one payload that carries several properties (`merge: true`), followed by `options`.
  ///
  /// Nested objects are merged member by member; otherwise the later part wins.
  ///
  /// - Precondition: Every template is an object (see ``isObject``).
  package static func render(
    merging parts: [(template: PayloadTemplate, wire: JSONValue)],
    options: [JSONValue.Member] = [],
    id: Int64 = 1,
    into output: inout [UInt8]
  ) {
    if parts.count == 1, options.isEmpty {
      parts[0].template.render(parts[0].wire, id: id, into: &output)
      return
    }
    var merged: [JSONValue.Member] = []
    for part in parts {
      guard case .object(let members) = part.template.structure else {
        preconditionFailure("Only payloads that are objects can be merged.")
      }
      for member in members {
        let filled = filled(member.value, with: part.wire, id)
        merge(JSONValue.Member(member.name, filled), into: &merged)
      }
    }
    for option in options { merge(option, into: &merged) }
    JSONWriter.append(.object(merged), to: &output)
  }

  private static func merge(_ member: JSONValue.Member, into members: inout [JSONValue.Member]) {
    guard let place = members.firstIndex(where: { $0.name == member.name }) else {
      members.append(member)
      return
    }
    if case .object(var inner) = members[place].value, case .object(let added) = member.value {
      for addition in added { merge(addition, into: &inner) }
      members[place].value = .object(inner)
    } else {
      members[place].value = member.value
    }
  }

  private static func filled(
    _ structure: JSONValue,
    with wire: JSONValue,
    _ id: Int64
  ) -> JSONValue {
    switch structure {
    case .string(placeholder): wire
    case .string(identity): .integer(id)
    case .array(let elements): .array(elements.map { filled($0, with: wire, id) })
    case .object(let members):
      .object(members.map { JSONValue.Member($0.name, filled($0.value, with: wire, id)) })
    case .string(let text): part(text).map { $0.value(in: wire) ?? .null } ?? structure
    case .null, .boolean, .integer, .number: structure
    }
  }

  private static func compile(
    _ structure: JSONValue,
    into segments: inout [[UInt8]],
    _ placeholders: inout [Placeholder]
  ) {
    switch structure {
    case .string(placeholder):
      segments.append([])
      placeholders.append(.value)
    case .string(identity):
      segments.append([])
      placeholders.append(.identity)
    case .array(let elements):
      append("[", to: &segments)
      for (position, element) in elements.enumerated() {
        if position > 0 { append(",", to: &segments) }
        compile(element, into: &segments, &placeholders)
      }
      append("]", to: &segments)
    case .object(let members):
      append("{", to: &segments)
      for (position, member) in members.enumerated() {
        if position > 0 { append(",", to: &segments) }
        JSONWriter.appendString(member.name, to: &segments[segments.count - 1])
        append(":", to: &segments)
        compile(member.value, into: &segments, &placeholders)
      }
      append("}", to: &segments)
    case .string(let text):
      guard let pointer = part(text) else {
        return JSONWriter.append(structure, to: &segments[segments.count - 1])
      }
      segments.append([])
      placeholders.append(.part(pointer))
    case .null, .boolean, .integer, .number:
      JSONWriter.append(structure, to: &segments[segments.count - 1])
    }
  }

  private static func append(_ text: StaticString, to segments: inout [[UInt8]]) {
    segments[segments.count - 1].append(contentsOf: text.description.utf8)
  }
}

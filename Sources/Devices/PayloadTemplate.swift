// Settle
// SPDX-License-Identifier: Apache-2.0

/// A command's payload: a JSON structure in which `$value` stands for the typed value.
///
/// `$value` counts where it is a whole string. A structure that is `$value` alone sends the bare
/// value: text without quotes, numbers in their shortest form.
package struct PayloadTemplate: Hashable, Sendable {
  /// What stands for the value.
  package static let placeholder = "$value"

  /// The structure as it was given.
  package let structure: JSONValue
  /// The bytes around the values: one more than there are values.
  private let segments: [[UInt8]]

  /// Whether the structure is `$value` alone.
  package var isBare: Bool { structure == .string(Self.placeholder) }

  /// Whether the payload is a JSON object, which is what merging needs.
  package var isObject: Bool {
    if case .object = structure { true } else { false }
  }

  /// Whether the value is in the payload at all.
  package var carriesValue: Bool { segments.count > 1 }

  /// Compiles a structure; a scalar `$value` sends the bare value.
  package init(_ structure: JSONValue) {
    self.structure = structure
    var segments: [[UInt8]] = [[]]
    switch structure {
    case .string(Self.placeholder): segments.append([])
    case .string(let text): segments[0].append(contentsOf: text.utf8)
    case .null, .boolean, .integer, .number, .array, .object:
      Self.compile(structure, into: &segments)
    }
    self.segments = segments
  }

  /// Appends the payload for one wire value.
  package func render(_ wire: JSONValue, into output: inout [UInt8]) {
    if isBare {
      wire.appendBare(to: &output)
      return
    }
    output.append(contentsOf: segments[0])
    for segment in segments.dropFirst() {
      JSONWriter.append(wire, to: &output)
      output.append(contentsOf: segment)
    }
  }

  /// Appends one payload that carries several properties (`merge: true`), members in the order
  /// given, followed by `options`.
  ///
  /// Objects inside are merged member by member; elsewhere the later part wins. All templates must
  /// be objects (see ``isObject``).
  package static func render(
    merging parts: [(template: PayloadTemplate, wire: JSONValue)],
    options: [JSONValue.Member] = [],
    into output: inout [UInt8]
  ) {
    if parts.count == 1, options.isEmpty {
      parts[0].template.render(parts[0].wire, into: &output)
      return
    }
    var merged: [JSONValue.Member] = []
    for part in parts {
      guard case .object(let members) = part.template.structure else {
        preconditionFailure("Only payloads that are objects can be merged.")
      }
      for member in members {
        let filled = filled(member.value, with: part.wire)
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

  private static func filled(_ structure: JSONValue, with wire: JSONValue) -> JSONValue {
    switch structure {
    case .string(placeholder): wire
    case .array(let elements): .array(elements.map { filled($0, with: wire) })
    case .object(let members):
      .object(members.map { JSONValue.Member($0.name, filled($0.value, with: wire)) })
    case .null, .boolean, .integer, .number, .string: structure
    }
  }

  private static func compile(_ structure: JSONValue, into segments: inout [[UInt8]]) {
    switch structure {
    case .string(placeholder): segments.append([])
    case .array(let elements):
      append("[", to: &segments)
      for (position, element) in elements.enumerated() {
        if position > 0 { append(",", to: &segments) }
        compile(element, into: &segments)
      }
      append("]", to: &segments)
    case .object(let members):
      append("{", to: &segments)
      for (position, member) in members.enumerated() {
        if position > 0 { append(",", to: &segments) }
        JSONWriter.appendString(member.name, to: &segments[segments.count - 1])
        append(":", to: &segments)
        compile(member.value, into: &segments)
      }
      append("}", to: &segments)
    case .null, .boolean, .integer, .number, .string:
      JSONWriter.append(structure, to: &segments[segments.count - 1])
    }
  }

  private static func append(_ text: StaticString, to segments: inout [[UInt8]]) {
    segments[segments.count - 1].append(contentsOf: text.description.utf8)
  }
}

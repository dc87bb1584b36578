// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
package import JSON

/// A command's payload: a JSON structure in which `$value` is replaced by the typed value.
///
/// Only whole strings are placeholders: `"$value"`, `"$text"` for the value as a JSON text,
/// `"$value/r"` for a member of a color, and `"$id"` for a message number that the device's reply
/// repeats. `"$implies/power"` is the value
/// that the property implies for `power` (see ``Property/implies``), once ``carrying(_:)`` says it.
/// A template that consists of `$value` alone sends the bare value: text without quotes, numbers in
/// their shortest form.
package struct PayloadTemplate: Hashable, Sendable {
  /// The placeholder of the value.
  package static let placeholder = "$value"
  /// The placeholder of the value as a JSON text.
  package static let textPlaceholder = "$text"
  /// The placeholder of the message number.
  package static let identity = "$id"

  private static let implication = "$implies/"

  private enum Placeholder: Hashable, Sendable {
    case value
    case text
    case part(JSONPointer)
    case identity
    case implied(Carried)
  }

  /// The wire value of another property that a command carries.
  package struct Carried: Hashable, Sendable {
    fileprivate let wire: JSONValue
    /// The wire value of the number 0, which implies the opposite; `nil` where there is none.
    fileprivate let zero: JSONValue?
    fileprivate let wireAtZero: JSONValue

    /// What the commands of `property` carry for `other`.
    package init(_ implication: Implication, of property: Property, for other: Property) {
      wire = other.wireValue(of: implication.value)
      if case .boolean(let flag) = implication.value, property.kind.numberRule != nil {
        zero = property.wireValue(of: .number(0))
        wireAtZero = other.wireValue(of: .boolean(!flag))
      } else {
        zero = nil
        wireAtZero = wire
      }
    }

    fileprivate func value(with sent: JSONValue) -> JSONValue { sent == zero ? wireAtZero : wire }

    private init(wire: JSONValue, zero: JSONValue?, wireAtZero: JSONValue) {
      self.wire = wire
      self.zero = zero
      self.wireAtZero = wireAtZero
    }

    fileprivate func map(_ transform: (JSONValue) -> JSONValue) -> Carried {
      Carried(wire: transform(wire), zero: zero, wireAtZero: transform(wireAtZero))
    }
  }

  /// The structure as it was given.
  package let structure: JSONValue
  /// The bytes before, between and after the placeholders.
  private let segments: [[UInt8]]
  private let placeholders: [Placeholder]
  /// The implied values, by the name in their placeholder.
  private let carried: [String: Carried]

  /// Whether the structure consists of `$value` alone.
  package let isBare: Bool

  /// Whether the payload is a JSON object, which merging requires.
  package var isObject: Bool {
    if case .object = structure { true } else { false }
  }

  /// Whether the payload contains the value.
  package var carriesValue: Bool {
    placeholders.contains {
      switch $0 {
      case .value, .text, .part: true
      case .identity, .implied: false
      }
    }
  }

  /// The members of the value that the payload contains one by one.
  package var parts: [JSONPointer] {
    placeholders.compactMap { if case .part(let pointer) = $0 { pointer } else { nil } }
  }

  /// The member of the value that a string such as `$value/r` stands for; `nil` for any other
  /// string.
  package static func part(_ text: String) -> JSONPointer? {
    guard text.utf8.first == UInt8(ascii: "$"), text.hasPrefix("$value/") else { return nil }
    return JSONPointer(String(text.dropFirst(placeholder.utf8.count)))
  }

  /// The names in `$implies/…`, whose values the structure has.
  package var impliedNames: [String] { Self.impliedNames(in: structure) }

  /// The template with these values in place of `$implies/…`; without a value, that member is left
  /// out.
  package func carrying(_ values: [String: Carried]) -> PayloadTemplate {
    let missing = impliedNames.filter { values[$0] == nil }
    return PayloadTemplate(Self.removing(missing, from: structure) ?? .null, carried: values)
  }

  /// The template with other texts, as a device of a template has them.
  func map(_ transform: (JSONValue) -> JSONValue) -> PayloadTemplate {
    let structure = transform(self.structure)
    let carried = self.carried.mapValues { $0.map(transform) }
    if structure == self.structure, carried == self.carried { return self }
    return PayloadTemplate(structure, carried: carried)
  }

  /// The placeholder of the value that is implied for `property`.
  package static func implied(_ property: String) -> String { implication + property }

  /// The property that a string such as `$implies/power` names; `nil` for any other string.
  package static func impliedName(_ text: String) -> String? {
    guard text.utf8.first == UInt8(ascii: "$"), text.hasPrefix(implication) else { return nil }
    return String(text.dropFirst(implication.utf8.count))
  }

  /// Compiles a structure; a scalar `$value` sends the bare value.
  package init(_ structure: JSONValue) { self.init(structure, carried: [:]) }

  private init(_ structure: JSONValue, carried: [String: Carried]) {
    self.structure = structure
    self.carried = carried
    isBare = structure == .string(Self.placeholder)
    var segments: [[UInt8]] = [[]]
    var placeholders: [Placeholder] = []
    switch structure {
    case .string(Self.placeholder), .string(Self.textPlaceholder):
      segments.append([])
      placeholders.append(isBare ? .value : .text)
    case .string(let text): segments[0].append(contentsOf: text.utf8)
    case .null, .boolean, .integer, .number, .array, .object:
      Self.compile(structure, carried, into: &segments, &placeholders)
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
      case .text: JSONWriter.append(Self.text(wire), to: &output)
      case .part(let pointer): JSONWriter.append(pointer.value(in: wire) ?? .null, to: &output)
      case .identity: JSONWriter.append(.integer(id), to: &output)
      case .implied(let carried): JSONWriter.append(carried.value(with: wire), to: &output)
      }
      output.append(contentsOf: segment)
    }
  }

  /// Appends one payload that carries several properties (`merge: true`), followed by `options`.
  ///
  /// Nested objects are merged member by member; otherwise the later part wins. A value that a part
  /// carries for another property yields to that property's own.
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
    func add(_ part: (template: PayloadTemplate, wire: JSONValue)) {
      guard case .object(let members) = part.template.structure else {
        preconditionFailure("Only payloads that are objects can be merged.")
      }
      for member in members {
        let filled = part.template.filled(member.value, with: part.wire, id)
        merge(JSONValue.Member(member.name, filled), into: &merged)
      }
    }
    for part in parts where !part.template.carried.isEmpty { add(part) }
    for part in parts where part.template.carried.isEmpty { add(part) }
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

  private func filled(_ structure: JSONValue, with wire: JSONValue, _ id: Int64) -> JSONValue {
    switch structure {
    case .string(Self.placeholder): wire
    case .string(Self.textPlaceholder): Self.text(wire)
    case .string(Self.identity): .integer(id)
    case .array(let elements): .array(elements.map { filled($0, with: wire, id) })
    case .object(let members):
      .object(members.map { JSONValue.Member($0.name, filled($0.value, with: wire, id)) })
    case .string(let text):
      Self.part(text).map { $0.value(in: wire) ?? .null }
        ?? Self.impliedName(text).flatMap { carried[$0]?.value(with: wire) } ?? structure
    case .null, .boolean, .integer, .number: structure
    }
  }

  /// A scalar as a JSON text.
  private static func text(_ wire: JSONValue) -> JSONValue {
    wire.scalarText.map { .string($0) } ?? wire
  }

  private static func compile(
    _ structure: JSONValue,
    _ carried: [String: Carried],
    into segments: inout [[UInt8]],
    _ placeholders: inout [Placeholder]
  ) {
    switch structure {
    case .string(placeholder):
      segments.append([])
      placeholders.append(.value)
    case .string(textPlaceholder):
      segments.append([])
      placeholders.append(.text)
    case .string(identity):
      segments.append([])
      placeholders.append(.identity)
    case .array(let elements):
      append("[", to: &segments)
      for (position, element) in elements.enumerated() {
        if position > 0 { append(",", to: &segments) }
        compile(element, carried, into: &segments, &placeholders)
      }
      append("]", to: &segments)
    case .object(let members):
      append("{", to: &segments)
      for (position, member) in members.enumerated() {
        if position > 0 { append(",", to: &segments) }
        JSONWriter.appendString(member.name, to: &segments[segments.count - 1])
        append(":", to: &segments)
        compile(member.value, carried, into: &segments, &placeholders)
      }
      append("}", to: &segments)
    case .string(let text):
      let placeholder =
        part(text).map(Placeholder.part)
        ?? impliedName(text).flatMap { carried[$0] }.map(Placeholder.implied)
      guard let placeholder else {
        return JSONWriter.append(structure, to: &segments[segments.count - 1])
      }
      segments.append([])
      placeholders.append(placeholder)
    case .null, .boolean, .integer, .number:
      JSONWriter.append(structure, to: &segments[segments.count - 1])
    }
  }

  private static func impliedNames(in structure: JSONValue) -> [String] {
    switch structure {
    case .string(let text): impliedName(text).map { [$0] } ?? []
    case .array(let elements): elements.flatMap { impliedNames(in: $0) }
    case .object(let members): members.flatMap { impliedNames(in: $0.value) }
    case .null, .boolean, .integer, .number: []
    }
  }

  private static func removing(_ names: [String], from structure: JSONValue) -> JSONValue? {
    switch structure {
    case .string(let text):
      if let name = impliedName(text), names.contains(name) { return nil }
      return structure
    case .array(let elements): return .array(elements.compactMap { removing(names, from: $0) })
    case .object(let members):
      return .object(
        members.compactMap { member in
          removing(names, from: member.value).map { JSONValue.Member(member.name, $0) }
        }
      )
    case .null, .boolean, .integer, .number: return structure
    }
  }

  private static func append(_ text: StaticString, to segments: inout [[UInt8]]) {
    segments[segments.count - 1].append(contentsOf: text.description.utf8)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Values

/// A device whose strings have marks, from which devices are made that differ in what fills them.
package struct DeviceTemplate: Hashable, Sendable {
  /// What stands for one placeholder: its text, and the number that it is, if it is one.
  package struct Filling: Hashable, Sendable {
    package let text: String
    package let number: Int64?

    /// A text; digits without a leading zero are a number too.
    package init(_ text: String) {
      self.text = text
      number = Int64(text).flatMap { String($0) == text ? $0 : nil }
    }

    /// The value of a string in a payload that is the placeholder alone.
    var json: JSONValue { number.map { .integer($0) } ?? .string(text) }
  }

  /// The device with marks, see ``TemplateMark``.
  package let pattern: Device

  package init(_ pattern: Device) { self.pattern = pattern }

  /// The identifier of the device that `fillings` make, by the number of the mark.
  package func id(_ fillings: [Int: Filling]) -> String {
    Filler(fillings: fillings).fill(pattern.id)
  }

  /// Whether `topic` sets a device of this template.
  package func isSet(by topic: String) -> Bool {
    pattern.properties.contains { TemplateMark.matches(topic, $0.command.topic) }
  }

  /// The device that `fillings` make, by the number of the mark.
  package func device(_ fillings: [Int: Filling]) -> Device {
    let filler = Filler(fillings: fillings)
    var device = pattern
    device.id = filler.fill(pattern.id)
    device.name = filler.fill(pattern.name)
    device.area = pattern.area.map { filler.fill($0) }
    device.details = pattern.details.map { filler.fill($0) }
    device.lane = pattern.lane.map { filler.fill($0) }
    device.options = pattern.options.map { filler.fill($0) }
    device.availability = pattern.availability.map { filler.fill($0) }
    device.awake = pattern.awake.map { filler.fill($0) }
    device.properties = pattern.properties.map { filler.fill($0) }
    return device
  }
}

/// Fills in the parts of a device; a part without a mark keeps its storage.
struct Filler {
  /// By the number of the mark.
  let fillings: [Int: DeviceTemplate.Filling]

  func fill(_ text: String) -> String {
    TemplateMark.replaced(text) { bytes(of: $0) }
  }

  private func bytes(of mark: Int) -> [UInt8] {
    Array((fillings[mark]?.text ?? TemplateMark.name(mark)).utf8)
  }

  func fill(_ details: DeviceDetails) -> DeviceDetails {
    var filled = details
    filled.manufacturer = details.manufacturer.map { fill($0) }
    filled.model = details.model.map { fill($0) }
    filled.url = details.url.map { fill($0) }
    filled.identifiers = details.identifiers.map { fill($0) }
    return filled
  }

  func fill(_ property: Property) -> Property {
    var filled = property
    filled.name = property.name.map { fill($0) }
    filled.kind = fill(property.kind)
    filled.command = fill(property.command)
    filled.states = property.states.map { fill($0) }
    filled.urgent = property.urgent.map { fill($0) }
    filled.implies = property.implies.map {
      Implication(property: $0.property, value: fill($0.value))
    }
    filled.wire.on = property.wire.on.map { fill($0) }
    filled.wire.off = property.wire.off.map { fill($0) }
    filled.wire.reportedOn = property.wire.reportedOn.map { fill($0) }
    filled.wire.reportedOff = property.wire.reportedOff.map { fill($0) }
    if !property.wire.words.isEmpty {
      filled.wire.words = [:]
      for (word, value) in property.wire.words { filled.wire.words[fill(word)] = fill(value) }
    }
    if !property.wire.reportedWords.isEmpty {
      filled.wire.reportedWords = [:]
      for (word, reports) in property.wire.reportedWords {
        filled.wire.reportedWords[fill(word)] = reports.map { fill($0) }
      }
    }
    return filled
  }

  func fill(_ command: CommandEndpoint) -> CommandEndpoint {
    var filled = command
    filled.topic = fill(command.topic)
    filled.payload = fill(command.payload)
    return filled
  }

  private func fill(_ rule: NumberRule) -> NumberRule {
    var filled = rule
    filled.unit = rule.unit.map { fill($0) }
    if let display = rule.display { filled.display?.unit = fill(display.unit) }
    return filled
  }

  private func fill(_ kind: ValueKind) -> ValueKind {
    switch kind {
    case .number(let rule): return .number(fill(rule))
    case .integer(let rule): return .integer(fill(rule))
    case .choice(let words): return .choice(words.map { fill($0) })
    case .action(let words): return .action(words.map { fill($0) })
    case .boolean, .text, .color: return kind
    }
  }

  private func fill(_ value: Value) -> Value {
    if case .text(let text) = value { .text(fill(text)) } else { value }
  }

  func fill(_ source: StateSource) -> StateSource {
    var filled = source
    filled.topic = fill(source.topic)
    filled.value = fill(source.value)
    if let get = source.get {
      filled.get = StateRequest(
        topic: fill(get.topic),
        payload: fill(json: get.payload)
      )
    }
    if let reply = source.reply {
      filled.reply = ReplySource(id: fill(reply.id), error: reply.error.map { fill($0) })
    }
    return filled
  }

  /// Fills in rendered JSON: a string that is one placeholder becomes the number that fills it.
  private func fill(json bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
      if let mark = TemplateMark.number(ofMember: bytes, at: index),
        let filling = fillings[mark], filling.number != nil
      {
        result += Array(":\(filling.text)".utf8)
        index += TemplateMark.memberLength
      } else {
        result.append(bytes[index])
        index += 1
      }
    }
    return TemplateMark.replaced(result) { self.bytes(of: $0) }
  }

  func fill(_ source: AvailabilitySource) -> AvailabilitySource {
    AvailabilitySource(
      topic: fill(source.topic),
      value: fill(source.value),
      online: fill(source.online),
      offline: fill(source.offline),
      isBelowDevice: source.isBelowDevice
    )
  }

  func fill(_ source: AwakeSource) -> AwakeSource {
    AwakeSource(topic: fill(source.topic), value: source.value.map { fill($0) })
  }

  private func fill(_ pointer: JSONPointer) -> JSONPointer {
    pointer.isWhole ? pointer : JSONPointer(fill(pointer.text)) ?? pointer
  }

  private func fill(_ payload: PayloadTemplate) -> PayloadTemplate { payload.map { fill($0) } }

  private func fill(_ value: JSONValue) -> JSONValue {
    switch value {
    case .string(let text):
      if let mark = TemplateMark.number(ofWhole: text), let filling = fillings[mark] {
        return filling.json
      }
      return .string(fill(text))
    case .array(let elements): return .array(elements.map { fill($0) })
    case .object(let members):
      return .object(members.map { JSONValue.Member(fill($0.name), fill($0.value)) })
    case .null, .boolean, .integer, .number: return value
    }
  }
}

/// The keys of devices that do not exist yet, and may appear with their first message.
package struct AwaitedDevices: Sendable {
  private struct Pattern: Sendable {
    /// The bytes before, between and after the placeholders of the identifier.
    let pieces: [[UInt8]]
    let properties: Set<String>
  }

  private var patterns: [Pattern] = []

  /// No device.
  package init() {}

  /// The devices of some templates.
  package init(_ templates: [DeviceTemplate]) {
    patterns = templates.map { template in
      Pattern(
        pieces: TemplateMark.pieces(of: template.pattern.id),
        properties: Set(template.pattern.properties.map(\.id))
      )
    }
  }

  /// Whether `key`, as `device/property`, may be one of theirs.
  package func awaits(_ key: String) -> Bool {
    guard !patterns.isEmpty, let slash = key.utf8.firstIndex(of: UInt8(ascii: "/")) else {
      return false
    }
    let id = Array(key.utf8[..<slash])
    let property = String(key[key.utf8.index(after: slash)...])
    return patterns.contains { $0.properties.contains(property) && Self.matches(id, $0.pieces) }
  }

  /// Whether every placeholder stands for one byte at least.
  private static func matches(_ id: [UInt8], _ pieces: [[UInt8]]) -> Bool {
    guard let first = pieces.first, let last = pieces.last, id.starts(with: first) else {
      return false
    }
    var place = first.count
    for piece in pieces.dropFirst().dropLast() {
      place += 1
      while place + piece.count <= id.count, !id[place...].starts(with: piece) { place += 1 }
      place += piece.count
    }
    return place + 1 + last.count <= id.count && id.reversed().starts(with: last.reversed())
  }
}

/// A device that has no number yet: its definition, and what fills the marks of that.
package struct DeviceInstance: Sendable {
  package let id: String
  let definition: DeviceDefinition
  let fillings: DeviceFillings

  init(id: String, _ definition: DeviceDefinition, _ fillings: DeviceFillings) {
    self.id = id
    self.definition = definition
    self.fillings = fillings
  }

  /// A device of its own.
  package init(_ device: Device) {
    self.init(id: device.id, DeviceDefinition(device), .none)
  }

  /// The device, made for the call.
  package var device: Device { definition.device(fillings) }

  /// The properties of the definition, whose topics may have marks.
  package var pattern: Device { definition.pattern }
}

/// Makes the devices of one template, which share its definition where they can.
package struct TemplateDevices {
  package let template: DeviceTemplate
  private let definition: DeviceDefinition?

  package init(_ template: DeviceTemplate) {
    self.template = template
    definition = DeviceDefinition(template)
  }

  /// The device of an item of a list.
  package func device(item: String) -> DeviceInstance {
    guard let definition else { return device([TemplateMark.item: DeviceTemplate.Filling(item)]) }
    return device(definition, DeviceFillings(text: item))
  }

  /// The device that `fillings` make, by the number of the mark.
  package func device(_ fillings: [Int: DeviceTemplate.Filling]) -> DeviceInstance {
    guard let definition else { return DeviceInstance(template.device(fillings)) }
    return device(definition, DeviceFillings(fillings, marks: definition.marks))
  }

  private func device(_ definition: DeviceDefinition, _ fillings: DeviceFillings) -> DeviceInstance
  {
    let id = definition.filled(definition.pattern.id, with: fillings)
    return DeviceInstance(id: id, definition, fillings)
  }
}

/// What fills the marks of one device of a template, in little memory: the texts in order of their
/// marks, with slashes between them.
///
/// No text has a slash: each is an item of a list or a level of a topic.
package struct DeviceFillings: Hashable, Sendable {
  let text: String

  /// Fills nothing, for a device of its own.
  static let none = DeviceFillings(text: "")

  init(text: String) { self.text = text }

  /// The fillings of some marks.
  init(_ fillings: [Int: DeviceTemplate.Filling], marks: [Int]) {
    text = marks.map { fillings[$0]?.text ?? TemplateMark.name($0) }.joined(separator: "/")
  }

  /// The fillings by mark.
  func byMark(_ marks: [Int]) -> [Int: DeviceTemplate.Filling] {
    guard marks.count != 1 else { return [marks[0]: DeviceTemplate.Filling(text)] }
    let texts = text.split(separator: "/", omittingEmptySubsequences: false)
    return [Int: DeviceTemplate.Filling](
      zip(marks, texts.lazy.map { DeviceTemplate.Filling(String($0)) })
    ) { first, _ in first }
  }

  /// `pattern` with these texts in place of its marks.
  func fill(_ pattern: String, marks: [Int]) -> String {
    guard marks.count != 1 else {
      return TemplateMark.replaced(pattern) { _ in Array(text.utf8) }
    }
    let fillings = byMark(marks)
    return TemplateMark.replaced(pattern) { Array((fillings[$0]?.text ?? "").utf8) }
  }
}

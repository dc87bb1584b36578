// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import Values

/// What the devices of a template have in common, or one device that is like no other.
package final class DeviceDefinition: Sendable {
  /// The device, with marks where the devices of a template differ; see ``TemplateMark``.
  package let pattern: Device
  let properties: [PropertyDefinition]
  /// Whether it is the definition of a template, which any number of devices may have.
  package let isShared: Bool
  /// Whether properties of the device concern each other.
  package let isRelated: Bool
  /// Whether a device that returns after it lost its power gets values back.
  package let restores: Bool
  /// Whether the devices of a template differ in something beside their names and properties.
  let variesApart: Bool
  /// Which of its availability topics name the device; see ``MarkedTopic``.
  package let matchedAvailability: [Bool]
  /// Whether the topic on which it reports itself names the device.
  package let matchesAwake: Bool
  /// The marks of the identifier, in the order in which ``DeviceFillings`` has their texts.
  package let marks: [Int]
  /// The identifier, in parts that each end with a mark or at the end.
  let idPieces: [(text: [UInt8], mark: Int?)]
  /// Properties by identifier and alias.
  private let names: PropertyNames

  /// A device of its own; properties that are as in `old` keep their definitions.
  init(_ device: Device, continuing old: DeviceDefinition? = nil) {
    pattern = device
    isShared = false
    isRelated = Self.isRelated(device)
    restores = device.properties.contains(where: \.restore)
    variesApart = false
    marks = []
    idPieces = []
    matchedAvailability = []
    matchesAwake = false
    let known = old.flatMap { $0.isShared || $0.pattern.id != device.id ? nil : $0 }
    properties = device.properties.map { property in
      known?.definition(of: property) ?? PropertyDefinition(property, device: device.id)
    }
    names = PropertyNames(device)
  }

  /// The devices of a template; properties that are as in `old` keep their definitions.
  ///
  /// Returns `nil` where devices differ in more than names, topics and payloads.
  init?(_ template: DeviceTemplate, continuing old: DeviceDefinition? = nil) {
    pattern = template.pattern
    isShared = true
    isRelated = Self.isRelated(pattern)
    restores = pattern.properties.contains(where: \.restore)
    marks = TemplateMark.numbers(in: pattern.id).sorted()
    idPieces = TemplateMark.parts(of: pattern.id)
    let marks = marks
    matchedAvailability = pattern.availability.map {
      MarkedTopic($0.topic, marks: marks) != nil
    }
    matchesAwake = pattern.awake.map { MarkedTopic($0.topic, marks: marks) != nil } ?? false
    let sample = marks.map { ($0, DeviceTemplate.Filling("1")) }
    let filled = template.device(Dictionary(uniqueKeysWithValues: sample))
    variesApart =
      pattern.lane != filled.lane || pattern.options != filled.options
      || pattern.availability != filled.availability || pattern.awake != filled.awake
    var properties: [PropertyDefinition] = []
    for (property, sample) in zip(pattern.properties, filled.properties) {
      let definition =
        old?.definition(of: property)
        ?? PropertyDefinition(property, filledAs: sample, marks: marks)
      guard let definition else { return nil }
      properties.append(definition)
    }
    self.properties = properties
    names = PropertyNames(pattern)
  }

  private static func isRelated(_ device: Device) -> Bool {
    device.properties.contains {
      !$0.ends.isEmpty || !$0.excludes.isEmpty || !$0.implies.isEmpty
    }
  }

  private func definition(of property: Property) -> PropertyDefinition? {
    properties.first { $0.property.id == property.id && $0.property == property }
  }

  /// The place of the property with this identifier or alias.
  func place(ofProperty name: Span<UInt8>) -> Int? { names.find(name) }

  /// Whether both say the same of their devices, apart from properties.
  func hasSameHead(as other: DeviceDefinition) -> Bool {
    var (head, otherHead) = (pattern, other.pattern)
    head.properties = []
    otherHead.properties = []
    return head == otherHead
  }

  // MARK: - Filling in

  /// The device that these fillings make.
  func device(_ fillings: DeviceFillings) -> Device {
    isShared ? DeviceTemplate(pattern).device(fillings.byMark(marks)) : pattern
  }

  /// The device that these fillings make, without its properties.
  func head(_ fillings: DeviceFillings) -> Device {
    var head = pattern
    head.properties = []
    return isShared ? DeviceTemplate(head).device(fillings.byMark(marks)) : head
  }

  /// A text of the definition, with the fillings in place of its marks.
  func filled(_ text: String, with fillings: DeviceFillings) -> String {
    isShared ? fillings.fill(text, marks: marks) : text
  }
}

/// The properties of a device by identifier and alias, as bytes.
///
/// A few names are compared one by one, which takes less time and memory than a hash table.
struct PropertyNames: Sendable {
  private static let few = 12

  /// The bytes of all names, one name after the other.
  private let bytes: [UInt8]
  /// Where each name ends, and the place of its property.
  private let names: [(end: Int32, place: Int32)]
  /// Many names.
  private let table: KeyNames?

  init(_ device: Device) {
    var all: [(name: String, place: Int)] = []
    for (place, property) in device.properties.enumerated() { all.append((property.id, place)) }
    for (place, property) in device.properties.enumerated() {
      all += property.aliases.map { ($0, place) }
    }
    guard all.count <= Self.few else {
      var table = KeyNames()
      for (name, place) in all { table.insert(name, target: Int32(place)) }
      self.table = table
      (bytes, names) = ([], [])
      return
    }
    var bytes: [UInt8] = []
    var names: [(end: Int32, place: Int32)] = []
    for (name, place) in all {
      bytes += Array(name.utf8)
      names.append((Int32(bytes.count), Int32(place)))
    }
    (self.bytes, self.names) = (bytes, names)
    table = nil
  }

  /// The place of the property with this name; the first of several.
  func find(_ name: Span<UInt8>) -> Int? {
    if let table { return table.find(name).map { Int($0) } }
    var start = 0
    for (end, place) in names {
      if Int(end) - start == name.count, isEqual(name, from: start) { return Int(place) }
      start = Int(end)
    }
    return nil
  }

  private func isEqual(_ name: Span<UInt8>, from start: Int) -> Bool {
    for index in name.indices where bytes[start + index] != name[index] { return false }
    return true
  }
}

/// A property of a ``DeviceDefinition``: one of a device, or of every device of a template.
package final class PropertyDefinition: Sendable {
  /// The property; of a template, its name, command and state topics may have marks.
  ///
  /// Everything else is equal for all devices of the template.
  package let property: Property
  /// Whether the devices of a template have commands or states of their own.
  let variesCommand: Bool
  let variesStates: Bool
  let variesName: Bool
  /// Which of its states have topics of their own that name the device; see ``MarkedTopic``.
  package let matchedStates: [Bool]
  /// A fast reader for whole numbers; `nil` where it does not apply.
  let grid: WholeGrid?
  /// `device/property`; `nil` in a template.
  let key: String?

  /// A property of a device of its own.
  init(_ property: Property, device: String) {
    self.property = property
    key = "\(device)/\(property.id)"
    (variesCommand, variesStates, variesName) = (false, false, false)
    matchedStates = []
    grid = Self.grid(of: property)
  }

  /// A property of a template, of which one device has `filled`.
  ///
  /// Returns `nil` where devices differ in more than name, command and states.
  init?(_ property: Property, filledAs filled: Property, marks: [Int]) {
    variesCommand = property.command != filled.command
    variesStates = property.states != filled.states
    variesName = property.name != filled.name
    var rest = filled
    rest.command = property.command
    rest.states = property.states
    rest.name = property.name
    guard rest == property else { return nil }
    self.property = property
    key = nil
    matchedStates = property.states.map { MarkedTopic($0.topic, marks: marks) != nil }
    grid = Self.grid(of: property)
  }

  /// `nil` for a read-only property too: reading a value of it then says so.
  private static func grid(of property: Property) -> WholeGrid? {
    property.isReadOnly ? nil : property.kind.numberRule.flatMap { WholeGrid($0) }
  }

  /// Whether each device of the template has a property of its own.
  var varies: Bool { variesCommand || variesStates || variesName }
}

/// Conversions that run for every message, with a fast path for unscaled numbers.
extension PropertyDefinition {
  /// Reads a bare payload; see ``Property/value(fromPayload:)``.
  func value(fromPayload bytes: Span<UInt8>) throws(ValidationError) -> Value {
    if let number = grid?.value(of: bytes) { return .number(number) }
    if property.isReadOnly { try property.checkHasCommands() }
    return try property.kind.value(fromPayload: bytes)
  }

  /// The value as the device expects it; see ``Property/wireValue(of:)``.
  package func wireValue(of value: Value) -> JSONValue {
    if case .number(let number) = value, property.wire.isPlainNumber {
      return JSONValue(shortest: number)
    }
    return property.wireValue(of: value)
  }
}

/// A fast reader for whole numbers that are in a property's range and on its step.
///
/// Most payloads are such numbers; reading their digits suffices.
struct WholeGrid: Sendable {
  /// A `Double` holds this many digits exactly; ``NumberText`` reads longer numbers.
  private static let mostDigits = 15

  private let lowest: Int64
  private let highest: Int64
  private let origin: Int64
  private let step: Int64

  /// `nil` unless the range starts at a whole number and the step is whole or a fraction like 1/10.
  init?(_ rule: NumberRule) {
    let most = 1e15
    let origin = rule.range?.lowerBound ?? 0
    guard let begin = Int64(exactly: origin), origin.magnitude <= most else { return nil }
    self.origin = begin
    lowest = rule.range == nil ? Int64(-most) : begin
    highest = Int64(min(rule.range?.upperBound ?? most, most).rounded(.down))
    guard let step = rule.step, step > 0 else {
      self.step = 1
      return
    }
    if let whole = Int64(exactly: step) {
      self.step = whole
    } else {
      // Steps such as 0.5, 0.2 and 0.1 reach every whole number.
      let parts = (1 / step).rounded()
      guard parts <= 1000, (parts * step - 1).magnitude < 1e-12 else { return nil }
      self.step = 1
    }
  }

  /// Reads plain digits; `nil` for anything that the general reader must handle.
  func value(of bytes: Span<UInt8>) -> Double? {
    guard !bytes.isEmpty else { return nil }
    let isNegative = bytes[0] == UInt8(ascii: "-")
    let first = isNegative ? 1 : 0
    guard bytes.count > first, bytes.count - first <= Self.mostDigits else { return nil }
    var number: Int64 = 0
    for index in first..<bytes.count {
      let digit = bytes[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      number = number &* 10 &+ Int64(digit)
    }
    if isNegative { number = -number }
    guard number >= lowest, number <= highest else { return nil }
    guard step == 1 || (number - origin) % step == 0 else { return nil }
    return Double(number)
  }
}

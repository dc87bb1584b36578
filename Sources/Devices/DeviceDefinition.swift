// Settle
// SPDX-License-Identifier: Apache-2.0

/// What the devices of a template have in common, or one device that is like no other.
package final class DeviceDefinition: Sendable {
  /// The device, with marks where the devices of a template differ; see ``TemplateMark``.
  package let pattern: Device
  let properties: [PropertyDefinition]
  /// Whether it is the definition of a template, which any number of devices may have.
  package let isShared: Bool
  /// Whether properties of the device concern each other.
  package let isRelated: Bool
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

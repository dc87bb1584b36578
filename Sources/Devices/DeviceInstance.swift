// Settle
// SPDX-License-Identifier: Apache-2.0

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

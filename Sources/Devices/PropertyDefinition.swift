// Settle
// SPDX-License-Identifier: Apache-2.0

import Values

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

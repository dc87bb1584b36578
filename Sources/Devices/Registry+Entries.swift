// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

extension Registry {
  /// One key and its property.
  ///
  /// What the devices of a template have in common is read from ``definition``, at no cost;
  /// ``property`` is made for the call where devices differ.
  package struct Entry: Sendable {
    package let definition: PropertyDefinition
    /// The device's position in ``Registry/devices``.
    package let device: Int
    /// Whether a reload removed the property; its key can no longer be resolved.
    package let isRetired: Bool
    private let registry: Registry

    init(_ key: KeyIndex, in registry: Registry) {
      let row = registry.tables.keys[Int(key.rawValue)]
      definition = registry.tables.properties[Int(row.property)]
      device = row.device
      isRetired = row.isRetired
      self.registry = registry
    }

    /// `device/property`.
    package var key: String {
      definition.key ?? "\(registry.id(ofDevice: device))/\(definition.property.id)"
    }

    /// The property of this device.
    package var property: Property {
      guard definition.varies else { return definition.property }
      return Filler(fillings: byMark).fill(definition.property)
    }

    /// Where and how its commands are published.
    package var command: CommandEndpoint {
      guard definition.variesCommand else { return definition.property.command }
      return Filler(fillings: byMark).fill(definition.property.command)
    }

    /// Where its commands are published.
    package var commandTopic: String {
      guard definition.variesCommand else { return definition.property.command.topic }
      return registry.filled(definition.property.command.topic, ofDevice: device)
    }

    /// Where the device reports the property.
    package var states: [StateSource] {
      guard definition.variesStates else { return definition.property.states }
      let filler = Filler(fillings: byMark)
      return definition.property.states.map { filler.fill($0) }
    }

    /// Whether the key and its property are as in an earlier registry.
    package func isSame(as old: Entry) -> Bool {
      guard isRetired == old.isRetired else { return false }
      if definition === old.definition {
        return !definition.varies || fillings == old.fillings
      }
      let isTemplate = definition.key == nil && old.definition.key == nil
      if isTemplate, fillings == old.fillings {
        return definition.property == old.definition.property
      }
      return property == old.property
    }

    private var fillings: DeviceFillings { registry.tables.fillings(ofDevice: device) }

    private var byMark: [Int: DeviceTemplate.Filling] {
      fillings.byMark(registry.definition(ofDevice: device).marks)
    }
  }

  /// The devices of a registry.
  package struct Devices: RandomAccessCollection, Sendable {
    let registry: Registry

    package var startIndex: Int { 0 }
    package var endIndex: Int { registry.tables.devices.count }

    /// The device with a number, made for the call if it is one of a template.
    package subscript(number: Int) -> Device {
      let tables = registry.tables
      var device = tables.definition(ofDevice: number).device(tables.fillings(ofDevice: number))
      guard tables.isRemoved(number) else { return device }
      device.properties = []
      device.availability = []
      device.awake = nil
      device.group = nil
      return device
    }
  }

  /// The properties of a registry, those included that were removed.
  package struct Properties: RandomAccessCollection, Sendable {
    let registry: Registry

    package var startIndex: Int { 0 }
    package var endIndex: Int { registry.tables.keys.count }
    package subscript(place: Int) -> Entry { Entry(KeyIndex(Int32(place)), in: registry) }
  }

  /// A text of a device's definition as it is for this device.
  package func filled(_ text: String, ofDevice number: Int) -> String {
    definition(ofDevice: number).filled(text, with: tables.fillings(ofDevice: number))
  }

  /// Where a device reports whether it is online.
  package func availability(ofDevice number: Int) -> [AvailabilitySource] {
    tables.isRemoved(number) ? [] : varying(\.availability, ofDevice: number)
  }

  /// Where a device reports that it is awake; `nil` for one that does not sleep.
  package func awake(ofDevice number: Int) -> AwakeSource? {
    tables.isRemoved(number) ? nil : varying(\.awake, ofDevice: number)
  }

  /// The name of a device's lane.
  package func lane(ofDevice number: Int) -> String? { varying(\.lane, ofDevice: number) }

  /// Where a device is.
  package func area(ofDevice number: Int) -> String? { varying(\.area, ofDevice: number) }

  /// Whether a device tells when it is awake.
  package func sleeps(_ number: Int) -> Bool {
    !tables.isRemoved(number) && definition(ofDevice: number).pattern.awake != nil
  }

  /// Whether a device is a group.
  package func isGroup(_ number: Int) -> Bool {
    !tables.isRemoved(number) && definition(ofDevice: number).pattern.group != nil
  }

  /// A part of a device, made for the call if the devices of its template differ in it.
  private func varying<Part>(_ part: KeyPath<Device, Part>, ofDevice number: Int) -> Part {
    let definition = definition(ofDevice: number)
    guard definition.variesApart else { return definition.pattern[keyPath: part] }
    return definition.head(tables.fillings(ofDevice: number))[keyPath: part]
  }
}

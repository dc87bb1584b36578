// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Assigns numbers to devices and properties, and keeps those of an earlier registry.
struct RegistryNumbering {
  private var tables = RegistryTables()
  /// By device.
  private var fillings: [DeviceFillings] = []
  /// The first property of each definition.
  private var firstProperties: [Int32] = []
  /// The definitions of templates that were added, by the definition that a device came with.
  private var templates: [ObjectIdentifier: Int32] = [:]
  /// The definitions that devices came with, which have to live as long as ``templates``.
  private var given: [DeviceDefinition] = []

  private let old: RegistryTables?
  /// The definitions of templates of the earlier registry, by identifier.
  private var oldTemplates: [String: DeviceDefinition] = [:]
  /// The keys that were retired in the earlier registry.
  private var retired: [String: Int32] = [:]
  /// Which properties of the earlier registry were added again.
  private var isListed: [Bool] = []

  /// Starts with everything in `old`; ``finish()`` retires what is not added again.
  ///
  /// `count` devices are about to be added.
  init(_ old: RegistryTables?, count: Int) {
    self.old = old
    tables.order.reserveCapacity(count)
    guard let old else {
      tables.names.reserve(count)
      tables.devices.reserveCapacity(count)
      return
    }
    tables.names = old.names
    tables.keys = old.keys
    tables.devices = Array(repeating: RegistryTables.DeviceRow(), count: old.devices.count)
    fillings = old.devices.indices.map { old.fillings(ofDevice: $0) }
    for definition in old.definitions where definition.isShared {
      let id = definition.pattern.id
      if oldTemplates[id] == nil { oldTemplates[id] = definition }
    }
    for (place, row) in old.keys.enumerated() where row.isRetired {
      let name = old.names.name(row.device)
      retired["\(name)/\(old.properties[Int(row.property)].property.id)"] = Int32(place)
    }
    isListed = Array(repeating: false, count: old.keys.count)
  }

  /// Adds a device behind those before it.
  mutating func add(_ device: DeviceInstance) {
    let number = self.number(of: device.id)
    let before = number < (old?.devices.count ?? 0) ? old?.definition(ofDevice: number) : nil
    let definition = add(device.definition, replacing: before)
    tables.devices[number].definition = definition
    tables.devices[number].firstKey = addKeys(ofDevice: number, definition, before: before)
    fillings[number] = device.fillings
    tables.order.append(number)
  }

  private mutating func number(of id: String) -> Int {
    if let known = tables.names.find(id.utf8.span) { return Int(known) }
    let number = tables.devices.count
    tables.names.insert(id, target: Int32(number))
    tables.devices.append(RegistryTables.DeviceRow())
    fillings.append(.none)
    return number
  }

  // MARK: - Definitions

  /// The number of a definition; one that is as in the earlier registry is that one.
  private mutating func add(
    _ definition: DeviceDefinition,
    replacing before: DeviceDefinition?
  ) -> Int32 {
    guard definition.isShared else {
      guard let before, !before.isShared, before !== definition else { return append(definition) }
      return append(
        before.pattern == definition.pattern
          ? before : DeviceDefinition(definition.pattern, continuing: before)
      )
    }
    if let known = templates[ObjectIdentifier(definition)] { return known }
    given.append(definition)
    var used = definition
    if let template = oldTemplates[definition.pattern.id], template !== definition {
      used =
        template.pattern == definition.pattern
        ? template
        : DeviceDefinition(DeviceTemplate(definition.pattern), continuing: template) ?? definition
    }
    let number = templates[ObjectIdentifier(used)] ?? append(used)
    templates[ObjectIdentifier(definition)] = number
    templates[ObjectIdentifier(used)] = number
    return number
  }

  private mutating func append(_ definition: DeviceDefinition) -> Int32 {
    tables.definitions.append(definition)
    firstProperties.append(Int32(tables.properties.count))
    tables.properties.append(contentsOf: definition.properties)
    return Int32(tables.definitions.count - 1)
  }

  // MARK: - Keys

  /// Adds the keys of a device.
  ///
  /// - Returns: What its row has as its first key.
  private mutating func addKeys(
    ofDevice number: Int,
    _ definition: Int32,
    before: DeviceDefinition?
  ) -> Int32 {
    let properties = tables.definitions[Int(definition)].properties
    let first = firstProperties[Int(definition)]
    var keys: [Int32] = []
    keys.reserveCapacity(properties.count)
    for (place, property) in properties.enumerated() {
      let known = before == nil ? nil : key(of: property.property.id, ofDevice: number)
      let key = known ?? Int32(tables.keys.count)
      let row = RegistryTables.KeyRow(property: first + Int32(place), device: Int32(number))
      if known == nil { tables.keys.append(row) } else { tables.keys[Int(key)] = row }
      if Int(key) < isListed.count { isListed[Int(key)] = true }
      keys.append(key)
    }
    let start = keys.first ?? 0
    if keys.enumerated().allSatisfy({ $0.element == start + Int32($0.offset) }) { return start }
    tables.scattered.append(keys)
    return RegistryTables.DeviceRow.scattered - Int32(tables.scattered.count - 1)
  }

  /// The number that a property of a device had in the earlier registry.
  private func key(of property: String, ofDevice number: Int) -> Int32? {
    guard let old else { return nil }
    if let found = old.key(named: property.utf8.span, ofDevice: number),
      old.definition(of: found).property.id == property
    {
      return found.rawValue
    }
    return retired.isEmpty ? nil : retired["\(old.names.name(number))/\(property)"]
  }

  // MARK: - What was not added again

  /// Retires what was not added again.
  consuming func finish() -> RegistryTables {
    countTemplates()
    retireKeys()
    retireDevices()
    var end: Int32 = 0
    for number in tables.devices.indices {
      tables.texts.append(contentsOf: fillings[number].text.utf8)
      end += Int32(fillings[number].text.utf8.count)
      tables.devices[number].textEnd = end
    }
    return tables
  }

  private mutating func countTemplates() {
    guard !templates.isEmpty else { return }
    var counts = Array(repeating: 0, count: tables.definitions.count)
    for number in tables.order { counts[Int(tables.devices[number].definition)] += 1 }
    for (definition, count) in zip(tables.definitions, counts) where definition.isShared {
      tables.templates.append((definition, count))
    }
  }

  private mutating func retireKeys() {
    guard let old else { return }
    var numbers: [Int32: Int32] = [:]
    for (place, isListed) in isListed.enumerated() where !isListed {
      let row = old.keys[place]
      let property = numbers[row.property] ?? Int32(tables.properties.count)
      if Int(property) == tables.properties.count {
        tables.properties.append(old.properties[Int(row.property)])
        numbers[row.property] = property
      }
      tables.keys[place] = RegistryTables.KeyRow(
        property: property,
        device: Int32(row.device),
        isRetired: true
      )
    }
  }

  private mutating func retireDevices() {
    guard let old else { return }
    var numbers: [Int32: Int32] = [:]
    for number in old.devices.indices
    where tables.devices[number].firstKey == RegistryTables.DeviceRow.removed {
      let before = old.devices[number].definition
      let definition = numbers[before] ?? Int32(tables.definitions.count)
      if Int(definition) == tables.definitions.count {
        tables.definitions.append(old.definitions[Int(before)])
        numbers[before] = definition
      }
      tables.devices[number].definition = definition
    }
  }
}

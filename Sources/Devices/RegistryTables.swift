// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What a ``Registry`` knows of its devices and keys, in a few numbers for each.
struct RegistryTables: Sendable {
  /// A device, by number.
  struct DeviceRow {
    /// The position in ``RegistryTables/definitions``.
    var definition: Int32 = 0
    /// The number of its first key, which the others follow; see
    /// ``RegistryTables/members(ofDevice:)``.
    var firstKey: Int32 = DeviceRow.removed
    /// The end of its fillings in ``RegistryTables/texts``, which begin where the ones before end.
    var textEnd: Int32 = 0

    /// In place of the first key of a device that a reload removed.
    static let removed: Int32 = -1
    /// What the keys of a device whose numbers do not follow each other count down from.
    static let scattered: Int32 = -2
  }

  /// A property, by the number of its key.
  struct KeyRow {
    /// The position in ``RegistryTables/properties``.
    let property: Int32
    private let owner: Int32

    init(property: Int32, device: Int32, isRetired: Bool = false) {
      self.property = property
      owner = isRetired ? ~device : device
    }

    var device: Int { Int(owner < 0 ? ~owner : owner) }
    var isRetired: Bool { owner < 0 }
  }

  /// Those of current devices, then those of removed ones.
  var definitions: [DeviceDefinition] = []
  /// How many current devices each definition of a template has.
  var templates: [(definition: DeviceDefinition, count: Int)] = []
  /// The properties of all definitions, one definition after the other, then retired ones.
  var properties: [PropertyDefinition] = []
  var devices: [DeviceRow] = []
  var keys: [KeyRow] = []
  /// The keys of devices whose numbers do not follow each other.
  var scattered: [[Int32]] = []
  /// The identifiers of all devices, by number.
  var names = KeyNames()
  /// What fills the definitions of devices of templates.
  var texts: [UInt8] = []
  /// The numbers of the current devices, in order of definition.
  var order: [Int] = []

  // MARK: - Devices

  func definition(ofDevice number: Int) -> DeviceDefinition {
    definitions[Int(devices[number].definition)]
  }

  func isRemoved(_ number: Int) -> Bool { devices[number].firstKey == DeviceRow.removed }

  func fillings(ofDevice number: Int) -> DeviceFillings {
    let start = number == 0 ? 0 : Int(devices[number - 1].textEnd)
    let end = Int(devices[number].textEnd)
    guard start < end else { return .none }
    return DeviceFillings(text: String(decoding: texts[start..<end], as: UTF8.self))
  }

  /// The number of the current device with this identifier.
  func device(named id: Span<UInt8>) -> Int? {
    guard let found = names.find(id), !isRemoved(Int(found)) else { return nil }
    return Int(found)
  }

  /// The keys of a device, in order of definition.
  func members(ofDevice number: Int) -> DeviceKeys {
    let row = devices[number]
    if row.firstKey >= 0 {
      let count = definitions[Int(row.definition)].properties.count
      return DeviceKeys(first: row.firstKey, count: count)
    }
    if row.firstKey == DeviceRow.removed { return DeviceKeys(first: 0, count: 0) }
    return DeviceKeys(scattered[Int(DeviceRow.scattered - row.firstKey)])
  }

  // MARK: - Keys

  func definition(of key: KeyIndex) -> PropertyDefinition {
    properties[Int(keys[Int(key.rawValue)].property)]
  }

  func device(of key: KeyIndex) -> Int { keys[Int(key.rawValue)].device }

  /// The key of the bytes of `device/property`; aliases are accepted.
  func key(named name: Span<UInt8>) -> KeyIndex? {
    var slash = 0
    while slash < name.count, name[slash] != UInt8(ascii: "/") { slash += 1 }
    guard slash < name.count, let number = names.find(name.extracting(0..<slash)) else {
      return nil
    }
    return key(named: name.extracting(slash + 1..<name.count), ofDevice: Int(number))
  }

  /// The key of a device's property, by identifier or alias.
  func key(named property: Span<UInt8>, ofDevice number: Int) -> KeyIndex? {
    let row = devices[number]
    guard row.firstKey != DeviceRow.removed,
      let place = definitions[Int(row.definition)].place(ofProperty: property)
    else { return nil }
    return KeyIndex(
      row.firstKey >= 0 ? row.firstKey + Int32(place) : members(ofDevice: number)[place]
    )
  }
}

/// The numbers of a device's keys, in order of definition.
package struct DeviceKeys: RandomAccessCollection, Sendable {
  private let first: Int32
  /// The numbers, where they do not follow each other.
  private let list: [Int32]?
  package let endIndex: Int

  init(first: Int32, count: Int) {
    self.first = first
    list = nil
    endIndex = count
  }

  init(_ list: [Int32]) {
    first = 0
    self.list = list
    endIndex = list.count
  }

  package var startIndex: Int { 0 }
  package subscript(place: Int) -> Int32 { list?[place] ?? first + Int32(place) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut

/// All devices, with every property numbered densely: a property's ``KeyIndex`` is its place in
/// ``properties``, and the same number serves the queue.
///
/// It never changes, so those who hold it share it.
package final class Registry: Sendable {
  /// What there is to know of one key.
  ///
  /// An object, so that whoever looks at it copies nothing: a ``Property`` has a dozen references.
  package final class Entry: Sendable {
    /// `device/property`.
    package let key: String
    /// Place in ``Registry/devices``.
    package let device: Int
    package let property: Property
    /// It was taken out of the device files while the gateway ran: nobody can name it any more.
    package let isRetired: Bool
    /// How most payloads of a number are read, where that is possible.
    let grid: WholeGrid?

    init(key: String, device: Int, property: Property, isRetired: Bool = false) {
      self.key = key
      self.device = device
      self.property = property
      self.isRetired = isRetired
      grid = property.kind.numberRule.flatMap { WholeGrid($0) }
    }

    /// The same, taken out.
    var retired: Entry { Entry(key: key, device: device, property: property, isRetired: true) }
  }

  /// Devices by number; those that were taken out while the gateway ran stay, without properties.
  package let devices: [Device]
  package let properties: [Entry]

  /// Keys and their aliases.
  private let keys: KeyNames
  private let deviceIDs: KeyNames
  /// For each device its properties, in order of definition.
  private let members: [[Int32]]
  /// Devices in order of definition.
  private let order: [Int]

  /// Numbers the properties of `devices` in the order given.
  package convenience init(_ devices: [Device]) { self.init(devices, continuing: nil) }

  /// Numbers the properties of `devices` so that those that `old` has too keep their numbers; new
  /// ones follow.
  ///
  /// What is left out retires: its number stays taken, so that whatever is under way still has its
  /// place, and is given back when the key comes back.
  package init(_ devices: [Device], continuing old: Registry?) {
    var numbering = RegistryNumbering(old)
    for device in devices { numbering.add(device) }
    self.devices = numbering.devices
    properties = numbering.properties
    members = numbering.members
    order = numbering.order
    var keys = KeyNames()
    var deviceIDs = KeyNames()
    for number in order {
      let device = numbering.devices[number]
      deviceIDs.insert(device.id, target: Int32(number))
      for index in numbering.members[number] {
        keys.insert(numbering.properties[Int(index)].key, target: index)
      }
      for index in numbering.members[number] {
        for alias in numbering.properties[Int(index)].property.aliases {
          keys.insert("\(device.id)/\(alias)", target: index)
        }
      }
    }
    self.keys = keys
    self.deviceIDs = deviceIDs
  }

  /// The devices that there are, by number, in order of definition.
  package var deviceNumbers: [Int] { order }

  /// How many properties can be named.
  package var keyCount: Int { members.reduce(0) { $0 + $1.count } }

  /// The entry of a key.
  package subscript(index: KeyIndex) -> Entry { properties[Int(index.rawValue)] }

  /// Resolves `device/property`; aliases are taken.
  package func index(of key: String) throws(ValidationError) -> KeyIndex {
    if let found = index(ofKey: key.utf8.span) { return found }
    let parts = key.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[0].isEmpty, !parts[1].isEmpty else { throw .invalidKey(key) }
    return try index(of: String(parts[1]), inDevice: deviceIndex(of: String(parts[0])))
  }

  /// Resolves the bytes of `device/property`, as they stand in a topic; aliases are taken.
  package func index(ofKey bytes: Span<UInt8>) -> KeyIndex? {
    keys.find(bytes).map { KeyIndex($0) }
  }

  /// The device called `id`.
  package func deviceIndex(of id: String) throws(ValidationError) -> Int {
    if let found = deviceIndex(ofID: id.utf8.span) { return found }
    throw .unknownDevice(
      id,
      suggestion: Suggestion.nearest(to: id, in: order.map { devices[$0].id })
    )
  }

  /// The device whose identifier has these bytes.
  package func deviceIndex(ofID bytes: Span<UInt8>) -> Int? {
    deviceIDs.find(bytes).map { Int($0) }
  }

  /// A property, or alias, of a device.
  package func index(
    of property: String,
    inDevice device: Int
  ) throws(ValidationError) -> KeyIndex {
    let owner = devices[device]
    let bytes = Array("\(owner.id)/\(property)".utf8)
    if !property.utf8.contains(UInt8(ascii: "/")), let found = index(ofKey: bytes.span) {
      return found
    }
    let names = owner.properties.flatMap { [$0.id] + $0.aliases }
    throw .unknownProperty(
      property,
      device: owner.id,
      suggestion: Suggestion.nearest(to: property, in: names)
    )
  }

  /// Reads a value as a person or program gave it; see ``Property/value(from:)``.
  package func value(
    from input: JSONValue,
    of key: KeyIndex
  ) throws(ValidationError) -> Value {
    // A kind is small; a copy of the property would cost more than the reading.
    try properties[Int(key.rawValue)].property.kind.value(from: input)
  }

  /// Reads a bare payload as it came; see ``Property/value(fromPayload:)``.
  package func value(
    fromPayload bytes: Span<UInt8>,
    of key: KeyIndex
  ) throws(ValidationError) -> Value {
    try properties[Int(key.rawValue)].value(fromPayload: bytes)
  }

  /// The properties of a device, in order of definition; none of a device that was taken out.
  package func indices(ofDevice device: Int) -> [Int32] { members[device] }

  /// Keys that match a ``Pattern``, in order of definition.
  ///
  /// A pattern without wildcards finds its key by name, through an alias too.
  package func indices(matching pattern: String) -> [KeyIndex] {
    let matcher = Pattern(pattern)
    if matcher.isLiteral {
      return index(ofKey: pattern.utf8.span).map { [$0] } ?? []
    }
    return order.flatMap { members[$0] }
      .filter { matcher.matches(properties[Int($0)].key) }
      .map { KeyIndex($0) }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// All devices, with every property numbered densely: a property's ``KeyIndex`` is its place in
/// ``properties``, and the same number serves the queue.
package struct Registry: Sendable {
  package struct Entry: Sendable {
    /// `device/property`.
    package let key: String
    /// Place in ``Registry/devices``.
    package let device: Int
    package let property: Property
  }

  package let devices: [Device]
  package let properties: [Entry]

  /// Keys and their aliases.
  private let keys: KeyNames
  private let deviceIDs: KeyNames
  /// For each device its first property, and one past the last.
  private let firsts: [Int32]

  /// Numbers the properties of `devices` in the order given.
  package init(_ devices: [Device]) {
    var properties: [Entry] = []
    var keys = KeyNames()
    var deviceIDs = KeyNames()
    var firsts: [Int32] = [0]
    for (number, device) in devices.enumerated() {
      deviceIDs.insert(device.id, target: Int32(number))
      for property in device.properties {
        let key = "\(device.id)/\(property.id)"
        keys.insert(key, target: Int32(properties.count))
        properties.append(Entry(key: key, device: number, property: property))
      }
      for (place, property) in device.properties.enumerated() {
        for alias in property.aliases {
          keys.insert("\(device.id)/\(alias)", target: firsts[number] + Int32(place))
        }
      }
      firsts.append(Int32(properties.count))
    }
    self.devices = devices
    self.properties = properties
    self.keys = keys
    self.deviceIDs = deviceIDs
    self.firsts = firsts
  }

  /// The entry of a key.
  package subscript(index: KeyIndex) -> Entry { properties[Int(index.rawValue)] }

  /// Resolves `device/property`; aliases are taken.
  package func index(of key: String) throws(ValidationError) -> KeyIndex {
    let bytes = Array(key.utf8)
    if let found = index(ofKey: bytes.span) { return found }
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
    let bytes = Array(id.utf8)
    if let found = deviceIndex(ofID: bytes.span) { return found }
    throw .unknownDevice(
      id,
      suggestion: Suggestion.nearest(to: id, in: devices.lazy.map(\.id))
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

  /// The properties of a device, as a range of indices.
  package func indices(ofDevice device: Int) -> Range<Int32> {
    firsts[device]..<firsts[device + 1]
  }

  /// Keys that match a ``Pattern``, in order of definition.
  ///
  /// A pattern without wildcards finds its key by name, through an alias too.
  package func indices(matching pattern: String) -> [KeyIndex] {
    let matcher = Pattern(pattern)
    if matcher.isLiteral {
      let bytes = Array(pattern.utf8)
      return index(ofKey: bytes.span).map { [$0] } ?? []
    }
    return properties.indices.filter { matcher.matches(properties[$0].key) }
      .map { KeyIndex(Int32($0)) }
  }
}

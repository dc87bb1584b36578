// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// All devices and their properties, numbered densely.
///
/// A property's ``KeyIndex`` is its position in ``properties``; the queue uses the same number.
/// A registry is immutable and can be shared.
package final class Registry: Sendable {
  /// One key and its property.
  ///
  /// A class, because copying a ``Property`` retains a dozen references.
  package final class Entry: Sendable {
    /// `device/property`.
    package let key: String
    /// The device's position in ``Registry/devices``.
    package let device: Int
    package let property: Property
    /// Whether a reload removed the property; its key can no longer be resolved.
    package let isRetired: Bool
    /// A fast reader for whole numbers; `nil` where it does not apply.
    let grid: WholeGrid?

    init(key: String, device: Int, property: Property, isRetired: Bool = false) {
      self.key = key
      self.device = device
      self.property = property
      self.isRetired = isRetired
      grid = property.kind.numberRule.flatMap { WholeGrid($0) }
    }

    /// A copy that is marked as removed.
    var retired: Entry { Entry(key: key, device: device, property: property, isRetired: true) }
  }

  /// Devices by number.
  ///
  /// A device that a reload removed keeps its place, without properties.
  package let devices: [Device]
  package let properties: [Entry]

  /// Keys and their aliases.
  private let keys: KeyNames
  private let deviceIDs: KeyNames
  /// The properties of each device, in order of definition.
  private let members: [[Int32]]
  /// The numbers of the current devices, in order of definition.
  private let order: [Int]
  /// Groups and their members.
  package let groups: GroupTable
  /// In order of definition.
  package let scenes: [Scene]

  /// Numbers the properties of `devices` in the given order.
  package convenience init(_ devices: [Device]) { self.init(devices, continuing: nil) }

  /// Numbers the properties of `devices`.
  ///
  /// Keys that `old` contains keep their numbers, and unchanged properties their entries; new ones
  /// follow.
  ///
  /// A key that is only in `old` is retired. Its number stays reserved, because commands may still
  /// be in flight for it, and the key gets the same number again when it returns.
  ///
  /// `scenes` are those of `old` unless given.
  package init(_ devices: [Device], continuing old: Registry?, scenes: [Scene]? = nil) {
    var numbering = RegistryNumbering(old)
    for device in devices { numbering.add(device) }
    numbering.retireOthers()
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
    self.scenes = scenes ?? old?.scenes ?? []
    groups = GroupTable(
      order.filter { numbering.devices[$0].group != nil }
        .map { (numbering.devices[$0], numbering.members[$0]) }
    ) { name in keys.find(name.utf8.span).map { KeyIndex($0) } }
  }

  /// The numbers of the current devices, in order of definition.
  package var deviceNumbers: [Int] { order }

  /// The number of properties that are not retired.
  package var keyCount: Int { members.reduce(0) { $0 + $1.count } }

  /// The entry of a key.
  package subscript(index: KeyIndex) -> Entry { properties[Int(index.rawValue)] }

  /// Resolves `device/property`; aliases are accepted.
  ///
  /// - Throws: ``ValidationError`` when there is no such key, without a suggestion: see
  ///   ``suggesting(_:)``.
  package func index(of key: String) throws(ValidationError) -> KeyIndex {
    if let found = index(ofKey: key.utf8.span) { return found }
    guard let slash = key.utf8.firstIndex(of: UInt8(ascii: "/")) else { throw .invalidKey(key) }
    let device = key[..<slash]
    let property = key[key.utf8.index(after: slash)...]
    guard !device.isEmpty, !property.isEmpty, !property.utf8.contains(UInt8(ascii: "/")) else {
      throw .invalidKey(key)
    }
    return try index(of: String(property), inDevice: deviceIndex(of: String(device)))
  }

  /// Resolves the bytes of `device/property`, as in a topic; aliases are accepted.
  package func index(ofKey bytes: Span<UInt8>) -> KeyIndex? {
    keys.find(bytes).map { KeyIndex($0) }
  }

  /// The scene called `id`.
  ///
  /// - Throws: ``ValidationError`` when there is no such scene.
  package func scene(_ id: String) throws(ValidationError) -> Scene {
    if let found = scenes.first(where: { $0.id == id }) { return found }
    throw .unknownScene(id, suggestion: nil)
  }

  /// The number of the device called `id`.
  ///
  /// - Throws: ``ValidationError`` when there is no such device, without a suggestion.
  package func deviceIndex(of id: String) throws(ValidationError) -> Int {
    if let found = deviceIndex(ofID: id.utf8.span) { return found }
    throw .unknownDevice(id, suggestion: nil)
  }

  /// The number of the device whose identifier has these bytes.
  package func deviceIndex(ofID bytes: Span<UInt8>) -> Int? {
    deviceIDs.find(bytes).map { Int($0) }
  }

  /// Resolves a property of a device, by identifier or alias.
  ///
  /// - Throws: ``ValidationError`` when the device has no such property, without a suggestion.
  package func index(
    of property: String,
    inDevice device: Int
  ) throws(ValidationError) -> KeyIndex {
    let owner = devices[device]
    let bytes = Array("\(owner.id)/\(property)".utf8)
    if !property.utf8.contains(UInt8(ascii: "/")), let found = index(ofKey: bytes.span) {
      return found
    }
    throw .unknownProperty(property, device: owner.id, suggestion: nil)
  }

  /// An error about an unknown key with the name that was probably meant, if one is near.
  ///
  /// Linear in the number of devices; a gateway asks through a ``SuggestionLimiter``.
  package func suggesting(_ error: ValidationError) -> ValidationError {
    switch error {
    case .unknownDevice(let id, nil):
      let names = order.lazy.map { self.devices[$0].id }
      return .unknownDevice(id, suggestion: Suggestion.nearest(to: id, in: names))
    case .unknownProperty(let property, let device, nil, _):
      guard let number = deviceIndex(ofID: device.utf8.span) else { return error }
      let properties = devices[number].properties
      let names = properties.lazy.flatMap { [$0.id] + $0.aliases }
      return .unknownProperty(
        property,
        device: device,
        suggestion: Suggestion.nearest(to: property, in: names),
        has: properties.map(\.id)
      )
    case .unknownScene(let id, nil):
      return .unknownScene(id, suggestion: Suggestion.nearest(to: id, in: scenes.lazy.map(\.id)))
    case .invalidKey(let word, nil): return .invalidKey(word, suggestion: key(meantBy: word))
    case .unknownDevice, .unknownProperty, .unknownScene, .invalidKey, .inProperty, .wrongType,
      .outOfRange, .notAChoice, .unsupported, .noBase, .tooManyPending, .tooManyActions,
      .noRoomForAll, .notDurable, .shuttingDown, .held, .feedbackLoop:
      return error
    }
  }

  /// An error about an unknown property with those that its device has.
  func listing(_ error: ValidationError) -> ValidationError {
    guard case .unknownProperty(let property, let device, nil, _) = error,
      let number = deviceIndex(ofID: device.utf8.span)
    else { return error }
    let names = devices[number].properties.map(\.id)
    return .unknownProperty(property, device: device, suggestion: nil, has: names)
  }

  /// The key or the pattern that is probably meant by a word without a slash: a property that a
  /// device has, or the name of a device.
  private func key(meantBy word: String) -> String? {
    guard !word.isEmpty, !word.utf8.contains(UInt8(ascii: "/")) else { return nil }
    if deviceIndex(ofID: word.utf8.span) != nil { return "\(word)/*" }
    for number in order {
      let bytes = Array("\(devices[number].id)/\(word)".utf8)
      if let found = index(ofKey: bytes.span) { return properties[Int(found.rawValue)].key }
    }
    let near = Suggestion.nearest(to: word, in: order.lazy.map { self.devices[$0].id })
    return near.map { "\($0)/*" }
  }

  /// The pattern `DEVICE/*` for the name of a device; anything else as it is.
  package func pattern(for text: String) -> String {
    deviceIndex(ofID: text.utf8.span) == nil ? text : "\(text)/*"
  }

  /// Reads a value that a user gave; see ``Property/value(from:)``.
  package func value(
    from input: JSONValue,
    of key: KeyIndex
  ) throws(ValidationError) -> Value {
    // The kind is small; copying the property would cost more than reading the value.
    try properties[Int(key.rawValue)].property.kind.value(from: input)
  }

  /// Reads a bare payload; see ``Property/value(fromPayload:)``.
  package func value(
    fromPayload bytes: Span<UInt8>,
    of key: KeyIndex
  ) throws(ValidationError) -> Value {
    try properties[Int(key.rawValue)].value(fromPayload: bytes)
  }

  /// The properties of a device, in order of definition; empty for a device that was removed.
  package func indices(ofDevice device: Int) -> [Int32] { members[device] }

  /// Keys that match a ``Pattern``, in order of definition.
  ///
  /// A pattern without wildcards is looked up as a key or alias; any other is matched against every
  /// key.
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

// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// All devices and their properties, numbered densely.
///
/// A property's ``KeyIndex`` is its position in ``properties``; the queue uses the same number.
/// A registry is immutable and can be shared. Devices of a template share one definition, so that
/// each costs less than a hundred bytes here.
package final class Registry: Sendable {
  let tables: RegistryTables
  /// Groups and their members.
  package let groups: GroupTable
  /// In order of definition.
  package let scenes: [Scene]

  /// Numbers the properties of `devices` in the given order.
  package convenience init(_ devices: [Device]) { self.init(devices, continuing: nil) }

  /// Numbers the properties of `devices`; see ``init(_:continuing:scenes:)``.
  package convenience init(
    _ devices: [Device],
    continuing old: Registry?,
    scenes: [Scene]? = nil
  ) {
    self.init(devices.map { DeviceInstance($0) }, continuing: old, scenes: scenes)
  }

  /// Numbers the properties of `devices`.
  ///
  /// Keys that `old` contains keep their numbers, and unchanged properties their definitions; new
  /// ones follow.
  ///
  /// A key that is only in `old` is retired. Its number stays reserved, because commands may still
  /// be in flight for it, and the key gets the same number again when it returns.
  ///
  /// `scenes` are those of `old` unless given.
  package init(_ devices: [DeviceInstance], continuing old: Registry?, scenes: [Scene]? = nil) {
    var numbering = RegistryNumbering(old?.tables, count: devices.count)
    for device in devices { numbering.add(device) }
    let tables = numbering.finish()
    self.tables = tables
    self.scenes = scenes ?? old?.scenes ?? []
    groups = GroupTable(
      tables.order.lazy.filter { tables.definition(ofDevice: $0).pattern.group != nil }
        .map { (tables.definition(ofDevice: $0).pattern, tables.members(ofDevice: $0)) }
    ) { name in tables.key(named: name.utf8.span) }
  }

  /// Devices by number.
  ///
  /// A device that a reload removed keeps its place, without properties. The device of a template
  /// is made for each call; see ``definition(ofDevice:)``.
  package var devices: Devices { Devices(registry: self) }

  /// Properties by the number of their key.
  package var properties: Properties { Properties(registry: self) }

  /// The numbers of the current devices, in order of definition.
  package var deviceNumbers: [Int] { tables.order }

  /// The number of properties that are not retired.
  package var keyCount: Int { tables.order.reduce(0) { $0 + tables.members(ofDevice: $1).count } }

  /// The number of current devices that are groups.
  package var groupCount: Int {
    tables.order.count { tables.definition(ofDevice: $0).pattern.group != nil }
  }

  // MARK: - Devices

  /// The identifier of a device.
  package func id(ofDevice number: Int) -> String { tables.names.name(number) }

  /// What a device has in common with the others of its template; its texts may have marks.
  ///
  /// A removed device has its last one.
  package func definition(ofDevice number: Int) -> DeviceDefinition {
    tables.definition(ofDevice: number)
  }

  /// The definitions of templates, each with the number of its devices.
  package var templates: [(definition: DeviceDefinition, count: Int)] { tables.templates }

  /// A device as it is defined, to be continued by another registry.
  package func instance(_ number: Int) -> DeviceInstance {
    DeviceInstance(
      id: id(ofDevice: number),
      tables.definition(ofDevice: number),
      tables.fillings(ofDevice: number)
    )
  }

  /// Whether a device is as it was in an earlier registry, apart from its properties.
  package func hasSameDevice(_ number: Int, as old: Registry) -> Bool {
    if hasSameDefinition(number, as: old) { return true }
    if hasSameTexts(number, as: old) {
      return definition(ofDevice: number).hasSameHead(as: old.definition(ofDevice: number))
    }
    var (before, after) = (old.devices[number], devices[number])
    before.properties = []
    after.properties = []
    return before == after
  }

  /// Whether a device and its properties are as they were in an earlier registry.
  package func isSame(_ number: Int, as old: Registry) -> Bool {
    if hasSameDefinition(number, as: old) { return true }
    if hasSameTexts(number, as: old) {
      return definition(ofDevice: number).pattern == old.definition(ofDevice: number).pattern
    }
    return devices[number] == old.devices[number]
  }

  /// Whether a device has the availability sources that it had in an earlier registry.
  package func hasSameAvailability(_ number: Int, as old: Registry) -> Bool {
    hasSameDefinition(number, as: old)
      || hasSameTexts(number, as: old)
        && definition(ofDevice: number).hasSameHead(as: old.definition(ofDevice: number))
      || availability(ofDevice: number) == old.availability(ofDevice: number)
  }

  /// Whether nothing of a device has changed since an earlier registry, without a comparison.
  private func hasSameDefinition(_ number: Int, as old: Registry) -> Bool {
    definition(ofDevice: number) === old.definition(ofDevice: number)
      && tables.isRemoved(number) == old.tables.isRemoved(number)
      && tables.fillings(ofDevice: number) == old.tables.fillings(ofDevice: number)
  }

  /// Whether a device was and is one of a template, and the same texts fill both.
  private func hasSameTexts(_ number: Int, as old: Registry) -> Bool {
    definition(ofDevice: number).isShared && old.definition(ofDevice: number).isShared
      && tables.isRemoved(number) == old.tables.isRemoved(number)
      && tables.fillings(ofDevice: number) == old.tables.fillings(ofDevice: number)
  }

  // MARK: - Keys

  /// What a property has in common with those of the template's other devices.
  package func definition(of key: KeyIndex) -> PropertyDefinition { tables.definition(of: key) }

  /// A number of that definition, which keys of alike devices have in common.
  package func definitionNumber(of key: KeyIndex) -> Int {
    Int(tables.keys[Int(key.rawValue)].property)
  }

  /// What the numbers of definitions are less than.
  package var definitionCount: Int { tables.properties.count }

  /// The number of the device of a key.
  package func device(of key: KeyIndex) -> Int { tables.device(of: key) }

  /// The entry of a key.
  package subscript(index: KeyIndex) -> Entry { Entry(index, in: self) }

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

  /// Resolves `device/property` where the name of a device, for all its keys, is allowed too.
  ///
  /// - Throws: ``ValidationError`` as ``index(of:)`` does.
  package func index(named name: String) throws(ValidationError) -> KeyIndex {
    do throws(ValidationError) {
      return try index(of: name)
    } catch .invalidKey {
      throw .unknownName(name, suggestion: nil)
    }
  }

  /// Resolves the bytes of `device/property`, as in a topic; aliases are accepted.
  package func index(ofKey bytes: Span<UInt8>) -> KeyIndex? {
    tables.key(named: bytes)
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
    tables.device(named: bytes)
  }

  /// Resolves a property of a device, by identifier or alias.
  ///
  /// - Throws: ``ValidationError`` when the device has no such property, without a suggestion.
  package func index(
    of property: String,
    inDevice device: Int
  ) throws(ValidationError) -> KeyIndex {
    if let found = tables.key(named: property.utf8.span, ofDevice: device) { return found }
    throw .unknownProperty(property, device: id(ofDevice: device), suggestion: nil)
  }

  /// An error about an unknown key with the name that was probably meant, if one is near.
  ///
  /// Linear in the number of devices, of which it compares the first ``comparedDevices``; a gateway
  /// asks through a ``SuggestionLimiter``.
  package func suggesting(_ error: ValidationError) -> ValidationError {
    switch error {
    case .unknownDevice(let id, nil):
      return .unknownDevice(id, suggestion: device(meantBy: id))
    case .unknownProperty(let property, let device, nil, _):
      guard let number = deviceIndex(ofID: device.utf8.span) else { return error }
      let properties = definition(ofDevice: number).pattern.properties
      let names = properties.lazy.flatMap { [$0.id] + $0.aliases }
      return .unknownProperty(
        property,
        device: device,
        suggestion: Suggestion.nearest(to: property, in: names),
        has: properties.map(\.id)
      )
    case .unknownScene(let id, nil):
      return .unknownScene(id, suggestion: Suggestion.nearest(to: id, in: scenes.lazy.map(\.id)))
    case .invalidKey(let word, nil):
      let name = name(meantBy: word)
      let isKey = name?.utf8.contains(UInt8(ascii: "/")) ?? true
      return .invalidKey(word, suggestion: isKey ? name : name.map { "\($0)/*" })
    case .unknownName(let word, nil): return .unknownName(word, suggestion: name(meantBy: word))
    case .unknownDevice, .unknownProperty, .unknownScene, .invalidKey, .unknownName, .inProperty,
      .wrongType, .outOfRange, .notAChoice, .unsupported, .noBase, .tooManyPending, .tooManyActions,
      .noRoomForAll, .notDurable, .shuttingDown, .held:
      return error
    }
  }

  /// An error about an unknown property with those that its device has.
  func listing(_ error: ValidationError) -> ValidationError {
    guard case .unknownProperty(let property, let device, nil, _) = error,
      let number = deviceIndex(ofID: device.utf8.span)
    else { return error }
    let names = definition(ofDevice: number).pattern.properties.map(\.id)
    return .unknownProperty(property, device: device, suggestion: nil, has: names)
  }

  /// The key or the device that is probably meant by a word without a slash: a property that a
  /// device has, or the name of a device.
  private func name(meantBy word: String) -> String? {
    guard !word.isEmpty, !word.utf8.contains(UInt8(ascii: "/")) else { return nil }
    if deviceIndex(ofID: word.utf8.span) != nil { return word }
    for number in deviceNumbers.prefix(Self.comparedDevices) {
      if let found = tables.key(named: word.utf8.span, ofDevice: number) { return self[found].key }
    }
    return device(meantBy: word)
  }

  /// The device whose name is near to a word, or the only one with a part that is: `lamp` or `lmp`
  /// for `desk-lamp`.
  private func device(meantBy word: String) -> String? {
    if let name = Suggestion.nearest(to: word, in: comparedNames) { return name }
    let names = comparedNames.map { (id: $0, parts: $0.split { $0 == "-" || $0 == "_" }) }
    func only(_ part: String) -> String? {
      let found = names.filter { name in name.parts.contains { $0 == part } }
      return found.count == 1 ? found[0].id : nil
    }
    let parts = names.lazy.flatMap { $0.parts.map { String($0) } }
    return only(word) ?? Suggestion.nearest(to: word, in: parts).flatMap(only)
  }

  /// How many devices a suggestion compares: ten milliseconds' worth of the loop's time.
  private static let comparedDevices = 8192

  /// The identifiers that a suggestion compares.
  private var comparedNames: some Sequence<String> {
    deviceNumbers.prefix(Self.comparedDevices).lazy.map { self.id(ofDevice: $0) }
  }

  /// The pattern `DEVICE/*` for the name of a device; anything else as it is.
  package func pattern(for text: String) -> String {
    deviceIndex(ofID: text.utf8.span) == nil ? text : "\(text)/*"
  }

  /// Reads a value that a user gave; see ``Property/value(from:)`` and
  /// ``ValueKind/asWritten(_:_:)``.
  package func value(
    from input: JSONValue,
    written: @autoclosure () -> JSONValue? = nil,
    of key: KeyIndex
  ) throws(ValidationError) -> Value {
    let definition = definition(of: key)
    let input = definition.property.kind.asWritten(input, written())
    guard !definition.property.isReadOnly else { return try definition.property.value(from: input) }
    // The kind is small; copying the property would cost more than reading the value.
    return try definition.property.kind.value(from: input)
  }

  /// Reads a bare payload; see ``Property/value(fromPayload:)``.
  package func value(
    fromPayload bytes: Span<UInt8>,
    of key: KeyIndex
  ) throws(ValidationError) -> Value {
    try definition(of: key).value(fromPayload: bytes)
  }

  /// The properties of a device, in order of definition; empty for a device that was removed.
  package func indices(ofDevice device: Int) -> DeviceKeys { tables.members(ofDevice: device) }

  /// Keys that match a ``Pattern``, in order of definition.
  ///
  /// A pattern without wildcards is looked up as a key or alias; any other is matched against every
  /// key.
  package func indices(matching pattern: String) -> [KeyIndex] {
    let matcher = Pattern(pattern)
    if matcher.isLiteral {
      return index(ofKey: pattern.utf8.span).map { [$0] } ?? []
    }
    return deviceNumbers.flatMap { tables.members(ofDevice: $0) }
      .filter { matcher.matches(self[KeyIndex($0)].key) }
      .map { KeyIndex($0) }
  }
}

/// Which keys a group's key stands for, and which groups' keys stand for a key.
package struct GroupTable: Sendable {
  private var members: [KeyIndex: [KeyIndex]] = [:]
  private var groups: [KeyIndex: [KeyIndex]] = [:]

  /// The groups among `devices`, each with its keys; `find` returns the key of a name.
  init(
    _ devices: some Sequence<(device: Device, keys: DeviceKeys)>,
    find: (String) -> KeyIndex?
  ) {
    for (device, keys) in devices {
      guard let group = device.group else { continue }
      for (number, property) in zip(keys, device.properties) {
        let key = KeyIndex(number)
        let found = group.members.compactMap { find("\($0)/\(property.id)") }
        members[key] = found
        for member in found { groups[member, default: []].append(key) }
      }
    }
  }

  package var isEmpty: Bool { members.isEmpty }

  /// The keys of all groups.
  package var keys: [KeyIndex] { members.keys.sorted { $0.rawValue < $1.rawValue } }

  /// The keys that a group's key stands for, in order of its members; empty for any other key.
  package func members(of key: KeyIndex) -> [KeyIndex] { members[key] ?? [] }

  /// The groups' keys that stand for `key`.
  package func groups(of key: KeyIndex) -> [KeyIndex] { groups[key] ?? [] }
}

/// Bounds the work for suggestions: at most one search a second.
///
/// An error that comes too early stays without a suggestion, unless it is the same as the last one:
/// a repeated mistake gets the same answer.
package struct SuggestionLimiter: Sendable {
  private static let interval = Duration.seconds(1)

  /// The searches so far.
  package private(set) var searches: UInt64 = 0
  private var next = Moment.zero
  private var last: (error: ValidationError, answer: ValidationError, registry: ObjectIdentifier)?

  package init() {}

  /// An error about an unknown key, with a suggestion if there is one and a search may be made.
  ///
  /// All other errors are returned as they are.
  package mutating func suggesting(
    _ error: ValidationError,
    from registry: Registry,
    at now: Moment
  ) -> ValidationError {
    guard error.isUnknownKey else { return error }
    if let last, last.error == error, last.registry == ObjectIdentifier(registry) {
      return last.answer
    }
    guard next <= now else { return registry.listing(error) }
    next = now.advanced(by: Self.interval)
    searches += 1
    let answer = registry.suggesting(error)
    last = (error, answer, ObjectIdentifier(registry))
    return answer
  }
}

extension ValidationError {
  /// Whether there is no such device, property or scene.
  fileprivate var isUnknownKey: Bool {
    switch self {
    case .unknownDevice, .unknownProperty, .unknownScene, .invalidKey, .unknownName: true
    case .inProperty, .wrongType, .outOfRange, .notAChoice, .unsupported, .noBase,
      .tooManyPending, .tooManyActions, .noRoomForAll, .notDurable, .shuttingDown, .held:
      false
    }
  }
}

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

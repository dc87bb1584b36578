// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Configuration
import Devices
import HomeAssistant
import LastOut
import MQTT
import Routing

/// The gateway's topics: their names, their roles, and the subscriptions they need.
///
/// A reload makes another one, which does not change once it is complete.
final class TopicMap {
  let status: String
  /// How many partitions a cluster has; 0 without one.
  private let partitions: Int
  let subscriptions: TopicSubscriptions
  /// The name of this gateway on the trail of a routed message.
  let routeName: String
  private let ownRouteProperties: PublishProperties
  private let base: String
  let baseBytes: [UInt8]
  private let inputs: [InputConfiguration]
  private let lanes: [String: LaneLimits]
  private var table = TopicTable()
  private var patterns = TopicPatterns()
  /// The devices whose topics ``patterns`` has.
  private var registry: Registry?
  /// Inputs whose topic has wildcards, by their number.
  private var wildInputs: [(filter: String, number: Int)] = []

  /// How many properties and devices were added; see ``add(_:of:)``.
  private var addedKeys = 0
  private var addedDevices = 0

  /// The topics of all devices and inputs.
  convenience init(
    configuration: GatewayConfiguration,
    registry: Registry,
    sources: [DeviceSource] = [],
    announcer: DiscoveryAnnouncer?
  ) {
    self.init(
      configuration: configuration,
      subscriptions: TopicSubscriptions(
        configuration: configuration,
        registry: registry,
        sources: sources,
        announcer: announcer
      )
    )
    while !add(1000, of: registry) {}
  }

  /// No device's topics yet; ``add(_:of:)`` adds them.
  init(configuration: GatewayConfiguration, subscriptions: TopicSubscriptions) {
    base = configuration.baseTopic
    baseBytes = Array(base.utf8)
    self.subscriptions = subscriptions
    inputs = configuration.inputs
    lanes = configuration.lanes
    status = "\(base)/status"
    partitions = configuration.cluster?.partitions ?? 0
    routeName = String("\(HostName.current)/\(base)".map { $0 == " " ? "_" : $0 })
    ownRouteProperties = Self.routeProperties(routeName)
  }

  /// The topic of what follows the messages that the broker retains, also on the session of a
  /// partition.
  static func marker(below base: String, of partition: Partition? = nil) -> String {
    "\(base)/status/retained/marker" + (partition.map { "/\($0.number)" } ?? "")
  }

  /// Adds the topics of the next properties and devices, `limit` of them at most, and at last those
  /// of inputs.
  ///
  /// - Returns: Whether all were added.
  func add(_ limit: Int, of registry: Registry) -> Bool {
    if self.registry == nil {
      for template in registry.templates { patterns.add(template.definition) }
      self.registry = registry
    }
    let lastKey = min(addedKeys + limit, registry.properties.count)
    for place in addedKeys..<lastKey { addStates(of: KeyIndex(Int32(place)), in: registry) }
    let rest = limit - (lastKey - addedKeys)
    addedKeys = lastKey
    let numbers = registry.deviceNumbers
    let lastDevice = min(addedDevices + rest, numbers.count)
    for number in numbers[addedDevices..<lastDevice] { addDevice(number, in: registry) }
    addedDevices = lastDevice
    guard rest > 0, lastDevice == numbers.count else { return false }
    for scene in registry.scenes {
      table.add(.command(.scene(scene.id)), for: "\(base)/scene/\(scene.id)/set")
    }
    addInputs()
    return true
  }

  /// Adds the states of a property that ``patterns`` does not have.
  private func addStates(of key: KeyIndex, in registry: Registry) {
    let definition = registry.definition(of: key)
    guard definition.matchedStates.isEmpty || definition.matchedStates.contains(false) else {
      return
    }
    let entry = registry[key]
    guard !entry.isRetired else { return }
    for (number, source) in entry.states.enumerated()
    where definition.matchedStates.isEmpty || !definition.matchedStates[number] {
      table.add(.state(key, source: number), for: source.topic)
    }
  }

  /// Adds the topics of a device that ``patterns`` does not have.
  private func addDevice(_ number: Int, in registry: Registry) {
    let definition = registry.definition(ofDevice: number)
    let isMatched = definition.matchedAvailability
    if isMatched.isEmpty || isMatched.contains(false) {
      for (place, source) in registry.availability(ofDevice: number).enumerated()
      where isMatched.isEmpty || !isMatched[place] {
        table.add(.availability(device: number, source: place), for: source.topic)
      }
    }
    // After its states: a value that the device turns out to have need not be sent.
    if !definition.matchesAwake, let awake = registry.awake(ofDevice: number) {
      table.add(.awake(device: number), for: awake.topic)
    }
  }

  private func addInputs() {
    for (number, input) in inputs.enumerated() {
      if Topic.hasWildcard(input.topic) {
        wildInputs.append((input.topic, number))
      } else {
        table.add(.command(.input(number)), for: input.topic)
      }
    }
    for (name, limits) in lanes {
      if let busy = limits.busy { table.add(.busy(lane: name), for: busy.topic) }
    }
    table.add(.status, for: status)
    table.add(.marker, for: Self.marker(below: base))
    for number in 0..<partitions {
      table.add(.marker, for: Self.marker(below: base, of: Partition(number)))
    }
  }

  /// Frees the memory of some topics of a map that is not used any more.
  ///
  /// - Returns: Whether nothing is left.
  func free(_ limit: Int) -> Bool {
    registry = nil
    patterns = TopicPatterns()
    return table.free(limit)
  }

  /// The roles of a topic that has no wildcard.
  private func deviceRoles(of topic: Span<UInt8>) -> [TopicTable.Role] {
    let own = table.roles(of: topic)
    guard !patterns.isEmpty, let registry else { return own }
    let shared = patterns.roles(of: topic, in: registry)
    guard !shared.isEmpty else { return own }
    return (own + shared).sorted { $0.rank < $1.rank }
  }

  /// The user property that names the gateways that a routed message has passed.
  static let routeMark = "settle-route"

  /// Marks a routed message, so that this gateway recognises it when it returns.
  func routeProperties(trail: String) -> PublishProperties {
    trail.isEmpty
      ? ownRouteProperties : Self.routeProperties(RouteTrail.joined(trail, routeName))
  }

  private static func routeProperties(_ trail: String) -> PublishProperties {
    var properties = PublishProperties()
    properties.userProperties[routeMark] = trail
    return properties
  }

  /// The roles of a topic; empty for one that has none.
  func roles(of topic: Span<UInt8>) -> [TopicTable.Role] {
    let roles = deviceRoles(of: topic)
    guard !wildInputs.isEmpty else { return roles }
    let name = Text.of(topic)
    return roles
      + wildInputs.filter { Topic.matches(filter: $0.filter, name: name) }.map {
        .command(.input($0.number))
      }
  }

  /// The status of one member of a cluster.
  func status(of member: String) -> String { "\(status)/\(member)" }

  /// The member whose status a topic shows; `nil` for any other topic.
  func member(inStatusTopic topic: Span<UInt8>) -> String? {
    let prefix = status.utf8.count + 1
    guard topic.count > prefix, topic[prefix - 1] == UInt8(ascii: "/"),
      Bytes.areEqual(topic.extracting(0..<prefix - 1), Array(status.utf8))
    else { return nil }
    return Text.of(topic.extracting(prefix..<topic.count))
  }

  /// The retained target of a key, or the targets of a device.
  func target(_ name: String) -> String { topic(name, "") }
  func info(_ device: String) -> String { topic(device, "/info") }
  func light(_ key: String) -> String { topic(key, "/light") }
  func event(_ key: String) -> String { topic(key, "/event") }

  /// `base/name` and an ending, in one allocation: every published message needs a topic.
  private func topic(_ name: String, _ ending: StaticString) -> String {
    let size = base.utf8.count + 1 + name.utf8.count + ending.utf8CodeUnitCount
    return unsafe String(unsafeUninitializedCapacity: size) { buffer in
      var writer = unsafe TopicWriter(buffer: buffer)
      writer.append(base)
      writer.append("/")
      writer.append(name)
      writer.append(ending)
      return writer.count
    }
  }

  /// Whether a topic is a command topic, of a key that exists or not.
  func isCommandTopic(_ topic: String) -> Bool {
    subscriptions.commandFilters.contains { Topic.matches(filter: $0, name: topic) }
  }

  /// The scene in what a command topic names; `nil` if that is a key or a device.
  static func scene(inKey key: String) -> String? {
    let prefix = "scene/"
    return key.hasPrefix(prefix) ? String(key.dropFirst(prefix.count)) : nil
  }

  /// The key or the device that a command topic names.
  func key(ofCommandTopic topic: String) -> String {
    let levels = topic.utf8.dropFirst(base.utf8.count + 1)
    guard let end = levels.lastIndex(of: UInt8(ascii: "/")) else { return "" }
    return String(topic[levels.startIndex..<end])
  }
}

/// Writes texts one after the other into a buffer that has room for them.
@safe private struct TopicWriter {
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private(set) var count = 0

  init(buffer: UnsafeMutableBufferPointer<UInt8>) {
    unsafe self.buffer = buffer
  }

  mutating func append(_ text: String) {
    let bytes = text.utf8.span
    unsafe bytes.withUnsafeBufferPointer { unsafe append($0) }
  }

  mutating func append(_ text: StaticString) {
    unsafe append(UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  private mutating func append(_ bytes: UnsafeBufferPointer<UInt8>) {
    let place = unsafe UnsafeMutableBufferPointer(rebasing: buffer[count...])
    _ = unsafe place.initialize(fromContentsOf: bytes)
    count += bytes.count
  }
}

/// Command topics, which are read rather than looked up: `base/device/property/set`.
extension TopicMap {
  /// The role of a command topic of a device that exists; `nil` for any other topic.
  func commandRole(of topic: Span<UInt8>, in registry: Registry) -> TopicTable.Role? {
    let start = baseBytes.count + 1
    guard topic.count > start, topic[start - 1] == UInt8(ascii: "/") else { return nil }
    for place in baseBytes.indices where topic[place] != baseBytes[place] { return nil }
    var end = topic.count - 1
    while end > start, topic[end] != UInt8(ascii: "/") { end -= 1 }
    guard end > start else { return nil }
    let name = topic.extracting(start..<end)
    let verb = topic.extracting(end + 1..<topic.count)
    // Identifiers have no slash, so that a name with one is a key.
    for place in name.indices where name[place] == UInt8(ascii: "/") {
      if let key = registry.index(ofKey: name) {
        return Self.command(verb, of: key).map { .command($0) }
      }
      guard Bytes.areEqual(verb, Self.set) else { return nil }
      return light(name, in: registry).map { .command(.light($0)) }
    }
    if Bytes.areEqual(verb, Self.set) {
      return registry.deviceIndex(ofID: name).map { .command(.deviceSet($0)) }
    }
    if Bytes.areEqual(verb, Self.get) {
      return registry.deviceIndex(ofID: name).map { .deviceGet($0) }
    }
    return nil
  }

  /// The key in the name of a lamp: `device/property/light`.
  private func light(_ name: Span<UInt8>, in registry: Registry) -> KeyIndex? {
    let ending = Self.light
    guard subscriptions.hasLights, name.count > ending.count else { return nil }
    let start = name.count - ending.count
    guard Bytes.areEqual(name.extracting(start..<name.count), ending) else { return nil }
    return registry.index(ofKey: name.extracting(0..<start))
  }

  /// What the last level of a key's command topic asks for; `nil` for any other word.
  private static func command(_ verb: Span<UInt8>, of key: KeyIndex) -> TopicTable.Command? {
    // No two of them have both the length and the first byte in common.
    switch (verb.count, verb.isEmpty ? 0 : verb[0]) {
    case (3, UInt8(ascii: "s")) where Bytes.areEqual(verb, set): .set(key)
    case (4, UInt8(ascii: "s")) where Bytes.areEqual(verb, step): .step(key)
    case (6, UInt8(ascii: "t")) where Bytes.areEqual(verb, toggle): .toggle(key)
    case (5, UInt8(ascii: "f")) where Bytes.areEqual(verb, flush): .flush(key)
    case (6, UInt8(ascii: "c")) where Bytes.areEqual(verb, cancel): .cancel(key)
    default: nil
    }
  }

  private static let light = Array("/light".utf8)
  private static let get = Array("get".utf8)
  private static let set = Array("set".utf8)
  private static let step = Array("step".utf8)
  private static let toggle = Array("toggle".utf8)
  private static let flush = Array("flush".utf8)
  private static let cancel = Array("cancel".utf8)
}

/// The topics of templates, each of which stands for the topics of all its devices.
///
/// A topic is found by what is left of it without the levels that name the device. So a message
/// takes one look-up for each choice of such levels, however many templates and devices there are.
struct TopicPatterns: ~Copyable {
  /// A topic of a template.
  private struct Entry {
    let topic: MarkedTopic
    let definition: DeviceDefinition
    let role: Role
  }

  /// What the topic of one device is.
  private enum Role {
    case state(property: Int, source: Int)
    case availability(source: Int)
    case awake
  }

  /// The topics with `+` in place of the levels that name the device.
  private var filters = KeyTable()
  /// By filter.
  private var topics = KeyArray<[Entry]>()
  /// The positions of the levels that name the device, each choice once.
  private var shapes: [[Int]] = []
  /// The levels of the topic that is looked up, and the bytes of its filter.
  private var levels: [Range<Int>] = []
  private var filter: [UInt8] = []

  var isEmpty: Bool { shapes.isEmpty }

  /// Adds the topics of a template.
  mutating func add(_ definition: DeviceDefinition) {
    // In the order of ``TopicMap/add(_:of:)``.
    for (place, property) in definition.pattern.properties.enumerated() {
      for (number, source) in property.states.enumerated() {
        add(.state(property: place, source: number), source.topic, of: definition)
      }
    }
    for (number, source) in definition.pattern.availability.enumerated() {
      add(.availability(source: number), source.topic, of: definition)
    }
    if let awake = definition.pattern.awake { add(.awake, awake.topic, of: definition) }
  }

  private mutating func add(_ role: Role, _ text: String, of definition: DeviceDefinition) {
    guard let topic = MarkedTopic(text, marks: definition.marks) else { return }
    let shape = topic.levels.map(\.position)
    if !shapes.contains(shape) { shapes.append(shape) }
    let index = filters.intern(topic.filter)
    topics.extend(toInclude: index, with: [])
    topics[index].append(Entry(topic: topic, definition: definition, role: role))
  }

  /// The roles of a topic; empty for one of no device of a template.
  mutating func roles(of topic: Span<UInt8>, in registry: Registry) -> [TopicTable.Role] {
    split(topic)
    var roles: [TopicTable.Role] = []
    for shape in shapes {
      guard let last = shape.last, last < levels.count else { continue }
      replace(shape, of: topic)
      guard let index = filters.find(filter.span) else { continue }
      for entry in topics[index] {
        guard
          let device = entry.topic.device(
            topic,
            levels: levels,
            of: entry.definition,
            in: registry
          )
        else { continue }
        switch entry.role {
        case .state(let place, let source):
          let key = KeyIndex(registry.indices(ofDevice: device)[place])
          roles.append(.state(key, source: source))
        case .availability(let source):
          roles.append(.availability(device: device, source: source))
        case .awake: roles.append(.awake(device: device))
        }
      }
    }
    return roles
  }

  private mutating func split(_ topic: Span<UInt8>) {
    levels.removeAll(keepingCapacity: true)
    var start = 0
    for place in topic.indices where topic[place] == UInt8(ascii: "/") {
      levels.append(start..<place)
      start = place + 1
    }
    levels.append(start..<topic.count)
  }

  /// Makes the filter that has wildcards in place of some levels.
  private mutating func replace(_ shape: [Int], of topic: Span<UInt8>) {
    filter.removeAll(keepingCapacity: true)
    var wild = shape[...]
    for (position, level) in levels.enumerated() {
      if position > 0 { filter.append(UInt8(ascii: "/")) }
      if wild.first == position {
        wild.removeFirst()
        filter.append(UInt8(ascii: "+"))
      } else {
        for place in level { filter.append(topic[place]) }
      }
    }
  }
}

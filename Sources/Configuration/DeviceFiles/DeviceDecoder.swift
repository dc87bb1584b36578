// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import LastOut
internal import Values

/// Reads devices from the nodes of device files.
struct DeviceDecoder {
  /// The maximum number of properties of all devices together.
  private static let maximumProperties = 1_000_000

  let context: DeviceContext
  let profiles: ProfileStore
  let problems: Problems
  private(set) var devices: [DeviceInstance] = []
  /// Devices that appear with their first message.
  private(set) var sources: [DeviceSource] = []
  /// The entries of `groups:` and `scenes:` of all files.
  var groupNodes: [YAMLNode.Pair] = []
  var sceneNodes: [YAMLNode.Pair] = []
  private var positions: [String: SourcePosition] = [:]
  /// What each device was read from.
  private(set) var entries: [String: DeviceEntry] = [:]
  private var propertyCount = 0
  /// The names of lanes that devices have and the settings do not define.
  private var undefinedLanes: Set<String> = []

  init(context: DeviceContext, profiles: ProfileStore, problems: Problems) {
    self.context = context
    self.profiles = profiles
    self.problems = problems
  }

  /// Reads the devices of one file.
  ///
  /// A mistake in one device does not affect the others. Of a file of the state folder, `isOfState`,
  /// a device that is defined already is left out: people have put it into their own folder.
  mutating func read(_ root: YAMLNode, isOfState: Bool = false) {
    if root.isNull { return }
    guard let pairs = root.pairs else {
      problems.add(
        root.position,
        "found \(root.kindDescription), expected devices: 'desk-lamp:' and its keys"
      )
      return
    }
    for pair in pairs {
      if Self.sections.contains(pair.key) {
        collect(pair)
        continue
      }
      if let head = TemplateHead(pair, baseTopic: context.baseTopic, problems) {
        read(head)
        continue
      }
      if let problem = Identifiers.problem(inDevice: pair.key) {
        let hint = TemplateHead.hint(for: pair.key)
        problems.add(
          pair.keyPosition,
          problem.message + (hint ?? ""),
          suggestion: hint == nil ? problem.suggestion : nil
        )
      } else if let first = positions[pair.key] {
        if isOfState {
          problems.warn(
            pair.keyPosition,
            "device '\(pair.key)' is left out, because it is already defined at \(first.text)"
          )
        } else {
          problems.add(
            pair.keyPosition,
            "device '\(pair.key)' is already defined at \(first.text)"
          )
        }
        continue
      }
      positions[pair.key] = pair.keyPosition
      if let device = device(pair, count: 1) {
        devices.append(DeviceInstance(device))
        entries[device.id] = DeviceEntry(pair: pair)
      }
    }
  }

  /// Reads a template, and makes its devices.
  private mutating func read(_ head: TemplateHead) {
    let count = if case .items(let items) = head.source { items.count } else { 1 }
    let before = problems.count
    guard let pattern = device(head.pair, count: count) else { return }
    let template = DeviceTemplate(pattern)
    switch head.source {
    case .invalid: break
    case .items(let items):
      makeDevices(
        of: TemplateDevices(template),
        for: items,
        from: head.pair,
        isUsable: problems.count == before
      )
    case .filter(let filter, let wildcards):
      let sample = DeviceTemplate.Filling("1")
      let fillings = Dictionary(uniqueKeysWithValues: (1...wildcards).map { ($0, sample) })
      if let problem = Identifiers.problem(inDevice: template.id(fillings)) {
        problems.add(head.pair.keyPosition, problem.message)
      }
      sources.append(DeviceSource(filter: filter, template: template))
    }
  }

  /// Makes the devices of a list; of each entry the first mistake is reported.
  private mutating func makeDevices(
    of devices: TemplateDevices,
    for items: TemplateItems,
    from pair: YAMLNode.Pair,
    isUsable: Bool
  ) {
    let position = pair.keyPosition
    guard items.count <= context.deviceLimit - self.devices.count,
      TemplateMark.numbers(in: devices.template.pattern.id) == [0]
    else { return }
    positions.reserveCapacity(positions.count + items.count)
    for (entry, node) in items.entries {
      for text in entry.texts {
        let device = devices.device(item: text)
        let id = device.id
        if let problem = Identifiers.problem(inDevice: id) {
          problems.add(node.position, "for: \(problem.message)")
          break
        }
        if let first = positions[id] {
          problems.add(
            node.position,
            first == position
              ? "for: '\(text)' is listed twice"
              : "device '\(id)' is already defined at \(first.text)"
          )
          break
        }
        positions[id] = position
        if isUsable {
          self.devices.append(device)
          entries[id] = DeviceEntry(pair: pair, item: text)
        }
      }
    }
  }

  /// Whether a property of the device is absent because of a mistake, which is reported.
  func lacksProperties(_ device: Device) -> Bool {
    let own = entries[device.id]?.pair.value["properties"]?.pairs
    return own?.contains { pair in
      pair.value.text != "none" && !device.properties.contains { $0.id == pair.key }
    } ?? false
  }

  /// Where a name is defined; `nil` if it is not.
  func definition(of name: String) -> SourcePosition? { positions[name] }

  mutating func define(_ name: String, at position: SourcePosition) { positions[name] = position }

  /// Adds a group, which appears as a device.
  mutating func add(_ group: Device) { devices.append(DeviceInstance(group)) }

  /// Reads one device, or the pattern of `count` devices.
  mutating func device(_ pair: YAMLNode.Pair, count: Int) -> Device? {
    guard let own = Section(pair.value, .device, problems, what: "device '\(pair.key)'") else {
      return nil
    }
    var chain: [ProfileStore.Profile] = []
    var isProfileUnknown = false
    if let name = own.text("profile"), let node = own["profile"] {
      let found = profiles.chain(from: name, at: node.position)
      chain = found ?? []
      isProfileUnknown = found == nil
    }
    let section = Section(layers: own.layers + chain.map(\.node), .device, problems)
    let (placeholders, isComplete) = placeholders(
      section,
      own: own,
      chain: chain,
      at: pair.keyPosition
    )
    let ttl = section.duration("ttl")
    let awake = AwakeReader(placeholders: placeholders).source(section)
    let standardTTL = awake == nil ? context.ttl : max(context.ttl, AwakeReader.standardTTL)
    let reader = PropertyReader(
      context: context,
      placeholders: placeholders,
      ttl: ttl ?? standardTTL,
      restores: section.flag("restore") ?? false,
      problems: problems,
      isProfileUnknown: isProfileUnknown
    )
    let properties = reader.properties(of: section, device: pair.key, chain: chain)
    guard count <= context.deviceLimit - devices.count else {
      let made = count == 1 ? "" : "\(count) of this one, "
      problems.add(
        pair.keyPosition,
        "more devices than limits.devices allows: \(made)\(devices.count) before it, "
          + "\(context.deviceLimit) allowed"
      )
      return nil
    }
    propertyCount += properties.count * count
    guard propertyCount <= Self.maximumProperties else {
      problems.add(pair.keyPosition, "more than \(Self.maximumProperties) properties")
      return nil
    }
    var device = Device(
      id: pair.key,
      name: own.text("name") ?? pair.key,
      properties: properties
    )
    device.area = own.text("area")
    device.deviceClass = section.deviceClass()
    device.details = DetailsReader.details(own)
    device.isOnPanel = own.flag("panel") ?? true
    device.lane = lane(section)
    device.merge = section.flag("merge") ?? false
    (device.options, device.optionFactors) = options(section, device: device)
    device.awake = awake
    if awake != nil { warnAboutActions(of: device, at: section["awake"]) }
    device.availability = AvailabilityReader(placeholders: placeholders, problems: problems)
      .sources(section)
    warnAboutRestoration(of: device, section, at: pair.keyPosition)
    return isComplete && !isProfileUnknown ? device : nil
  }

  private func warnAboutRestoration(
    of device: Device,
    _ section: Section,
    at position: SourcePosition
  ) {
    guard device.properties.contains(where: \.restore),
      !device.availability.contains(where: { device.isOwn($0, isShared: false) })
    else { return }
    let what = device.availability.isEmpty ? "no 'availability'" : "no 'availability' of its own"
    problems.warn(
      section["restore"]?.position ?? position,
      "restore: has no effect, because the device has \(what) that says when it returns"
    )
  }

  private func warnAboutActions(of device: Device, at node: YAMLNode?) {
    guard let node, let action = device.properties.first(where: \.isAction) else { return }
    problems.warn(
      node.position,
      "awake: '\(action.id)' is an action, and actions do not wait: it is refused while the device "
        + "sleeps, which is until it reports itself"
    )
  }

  private mutating func lane(_ section: Section) -> String? {
    guard let lane = section.text("lane"), let node = section["lane"] else { return nil }
    if lane == "none" { return nil }
    guard let known = context.lanes else { return lane }
    if known.isEmpty {
      // Once for each name, however many devices share the lane.
      if undefinedLanes.insert(lane).inserted {
        problems.warn(
          node.position,
          "lane '\(Excerpt.of(lane))' has no effect, because the settings define no lanes; "
            + "define it there, such as lanes: {\(Excerpt.of(lane)): {rate: 10/s}}"
        )
      }
    } else if !known.contains(lane) {
      problems.add(
        node.position,
        "unknown lane '\(Excerpt.of(lane))'; the settings define: \(Section.list(known))",
        suggestion: Suggestion.nearest(to: lane, in: known)
      )
    }
    return lane
  }

  /// Reads a list of names, or a mapping of names to factors.
  private func options(
    _ section: Section,
    device: Device
  ) -> (names: [String], factors: [String: Double]) {
    var names: [String] = []
    var factors: [String: Double] = [:]
    func add(_ name: String, at node: YAMLNode) {
      if device.properties.contains(where: { $0.id == name || $0.aliases.contains(name) }) {
        problems.add(node.position, "options: '\(Excerpt.of(name))' is a property already")
      } else {
        names.append(name)
      }
    }
    guard let pairs = section["options"]?.pairs else {
      for option in section.words("options") ?? [] { add(option.text, at: option.node) }
      return (names, factors)
    }
    for pair in pairs {
      add(pair.key, at: pair.value)
      guard let factor = section.number(pair.value, "options") else { continue }
      guard factor > 0 else {
        problems.add(pair.value.position, "options: a factor must be more than 0")
        continue
      }
      factors[pair.key] = factor
    }
    return (names, factors)
  }

  /// What the device's topics and payloads are built from, and whether that is all there.
  private func placeholders(
    _ section: Section,
    own: Section,
    chain: [ProfileStore.Profile],
    at position: SourcePosition
  ) -> (Placeholders, isComplete: Bool) {
    var isTopicValid = true
    var placeholders = Placeholders(device: position, problems: problems)
    if let topic = own.text("topic"), let node = own["topic"] {
      if let problem = Topic.problem(inName: topic) {
        problems.add(node.position, "topic: \(problem)")
        isTopicValid = false
      } else {
        placeholders.topic = topic
      }
    }
    placeholders.isTopicReported = own.hasMisspelled("topic") || !isTopicValid
    let declared = Set(chain.flatMap { $0.node["parameters"]?.pairs?.map(\.key) ?? [] })
    for layer in section.all("parameters").reversed() {
      guard let pairs = layer.pairs else {
        problems.add(layer, "parameters", expected: "a mapping")
        continue
      }
      for parameter in pairs {
        if let value = check(parameter, declared: declared, chain: chain) {
          placeholders.parameters[parameter.key] = value
        }
      }
    }
    let lacking = placeholders.parameters.filter { $0.value == .null }.keys.sorted()
    // A name that is not declared, which is reported, may be a misspelled one.
    let misspelled = section.all("parameters").flatMap { $0.pairs ?? [] }
      .filter { !declared.contains($0.key) }
      .compactMap { Suggestion.nearest(to: $0.key, in: declared.sorted()) }
    for name in lacking where !misspelled.contains(name) {
      problems.add(
        position,
        "parameter '\(name)' is missing: profile '\(chain.first?.name ?? "")' needs it"
      )
    }
    // Any word will do to check the rest.
    for name in lacking { placeholders.parameters[name] = .string("x") }
    return (placeholders, isTopicValid && lacking.isEmpty)
  }

  private func check(
    _ parameter: YAMLNode.Pair,
    declared: Set<String>,
    chain: [ProfileStore.Profile]
  ) -> JSONValue? {
    let name = parameter.key
    let isWord = !name.isEmpty && name.utf8.allSatisfy { (0x61...0x7A).contains($0) }
    guard isWord, !Placeholders.reserved.contains(name) else {
      problems.add(
        parameter.keyPosition,
        "'\(Excerpt.of(name))' is not a parameter name; allowed: small letters, and not "
          + Section.list(Placeholders.reserved)
      )
      return nil
    }
    guard chain.isEmpty || declared.contains(name) else {
      problems.add(
        parameter.keyPosition,
        "profile '\(chain[0].name)' has no parameter '\(Excerpt.of(name))'; it has: "
          + (declared.isEmpty ? "none" : Section.list(declared.sorted())),
        suggestion: Suggestion.nearest(to: name, in: declared.sorted())
      )
      return nil
    }
    guard let value = parameter.value.scalarJSON else {
      problems.add(parameter.value, "parameter '\(name)'", expected: "a word or number")
      return nil
    }
    return value
  }
}

/// The settings that device files depend on.
struct DeviceContext {
  var policies = PolicyTable()
  var ttl: Duration = .seconds(60)
  /// The defined lanes; `nil` without settings, which allows any name.
  var lanes: [String]?
  var baseTopic = "settle"
  /// How many devices there may be.
  var deviceLimit = Limits().devices
}

/// Reads `awake:`, the topic on which a device that sleeps reports itself.
struct AwakeReader {
  /// How long values wait for a sleeping device at least, where its file does not say.
  static let standardTTL = Duration.seconds(24 * 3600)

  let placeholders: Placeholders

  /// Reads the mapping; `none` means that the device does not sleep.
  func source(_ section: Section) -> AwakeSource? {
    guard let node = section["awake"], node.text != "none",
      let fields = section.nested("awake", .awake),
      let topic = fields.topic("topic", placeholders)
    else { return nil }
    guard let value = fields["value"] else { return AwakeSource(topic: topic) }
    let words = fields.scalars(
      value,
      "value",
      expected: "the payload, which is a word, number, true or false, or a list of them; without "
        + "'value' any payload counts"
    )
    return words.map { AwakeSource(topic: topic, value: $0) }
  }
}

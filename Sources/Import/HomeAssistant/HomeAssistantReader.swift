// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Reads Home Assistant's discovery messages.
struct HomeAssistantReader {
  /// A program whose entities are skipped: there is a better announcement, or they are the
  /// gateway's.
  struct Owner {
    /// What the topics of its entities begin with.
    let base: String
    let reason: String
    /// The reason where a device file already has a topic of the entity, if it is another one.
    var reasonIfDefined: String?
  }

  let prefix: String
  let owners: [Owner]
  /// Whether a device file already has a topic.
  let isDefined: (String) -> Bool
  /// Whether readings about the devices themselves are imported.
  var includesDiagnostic = false

  /// Reads the devices of all announcements, sorted by name.
  func findings(_ announcements: [Announcement]) -> Findings {
    var findings = Findings()
    var entities: [Entity] = []
    for announcement in announcements.sorted(by: { $0.topic < $1.topic }) {
      do throws(Rejection) {
        entities += try Entity.all(in: announcement, prefix: prefix)
      } catch {
        findings.report(.refused, announcement.topic, error.reason)
      }
    }
    // Its own ones repeat the identifiers of the devices that they are about.
    let own = entities.count(where: \.isOwn)
    entities.removeAll(where: \.isOwn)
    entities.shareIdentities()
    let gateways = GatewayTopics(entities)
    for place in entities.indices {
      guard let resolved = gateways.resolved(entities[place]) else { continue }
      entities[place] = resolved
      guard gateways.areSeveral else { continue }
      findings.report(
        .partly,
        resolved.device.name ?? resolved.objectID,
        "any gateway may report it; the topics are those of the one that announced it"
      )
    }
    var groups: [String: [Entity]] = [:]
    var skipped = own == 0 ? [:] : ["announced by Settle itself": own]
    for entity in entities {
      if let owner = owner(of: entity) {
        skipped[owner, default: 0] += 1
        let known = findings.described[entity.device.identity]
        var description = Findings.Description(
          area: known?.area ?? entity.device.area,
          details: entity.device.details.filled(from: known?.details),
          entities: known?.entities ?? EntityDescriptions()
        )
        description.entities.add(entity)
        findings.described[entity.device.identity] = description
      } else {
        groups[entity.device.identity, default: []].append(entity)
      }
    }
    for (owner, count) in skipped.sorted(by: { $0.key < $1.key }) {
      findings.report(.leftOut, "\(count) \(count == 1 ? "entity" : "entities")", owner)
    }
    for identity in groups.keys.sorted() {
      read(groups[identity] ?? [], identity: identity, &findings)
    }
    findings.devices.sort { ($0.name, $0.identity) < ($1.name, $1.identity) }
    return findings
  }

  private func owner(of entity: Entity) -> String? {
    let topics = (entity.config.members ?? []).filter {
      $0.name == "command_topic" || $0.name == "state_topic" || $0.name.hasSuffix("_command_topic")
    }.compactMap(\.value.string)
    for topic in topics {
      guard let found = owners.first(where: { topic.hasPrefix($0.base + "/") }) else { continue }
      return topics.contains(where: isDefined)
        ? found.reasonIfDefined ?? found.reason : found.reason
    }
    return nil
  }

  private func read(_ entities: [Entity], identity: String, _ findings: inout Findings) {
    let named = entities.compactMap { $0.device.name }.first { !$0.isEmpty }
    let first = entities[0]
    let name = named ?? first.name ?? first.objectID
    var device = ImportedDevice(
      identity: identity,
      name: name,
      comment: entities.map(\.device.model).first { !$0.isEmpty } ?? ""
    )
    device.area = entities.lazy.compactMap(\.device.area).first
    for entity in entities { device.details = device.details.filled(from: entity.device.details) }
    let silent = entities.filter { isSkipped($0) }
    if !silent.isEmpty {
      let names = silent.map { $0.name ?? $0.objectID }
      findings.report(.diagnostic, name, names.joined(separator: ", "))
    }
    var names = PropertyNames()
    var sources: [[JSONValue]] = []
    var options: [[String]] = []
    let used = entities.filter { !isSkipped($0) }
    let readings = used.filter { EntityPlatform.readings.contains($0.platform) }
    let combined = used.count { EntityPlatform.combined.contains($0.platform) }
    // What can be set gets the plain names.
    for entity in used.filter({ !EntityPlatform.readings.contains($0.platform) }) + readings {
      var reader = EntityReader(entity)
      EntityPlatform.read(&reader)
      let label = entity.name == name ? entity.platform : entity.name ?? entity.objectID
      for diagnostic in reader.diagnostics {
        // For an entity with one value, the property's name would be redundant.
        let id = reader.properties.first?.id ?? "value"
        let isOwn = reader.isSingle && diagnostic.reason.hasPrefix("\(id): ")
        let reason = isOwn ? String(diagnostic.reason.dropFirst(id.count + 2)) : diagnostic.reason
        findings.report(diagnostic.kind, "\(name): \(label)", reason)
      }
      guard !reader.properties.isEmpty else { continue }
      let isOnly = combined == 1 && EntityPlatform.combined.contains(entity.platform)
      device.properties += Self.renamed(reader, device: name, isOnly: isOnly, &names)
      if EntityPlatform.readings.contains(entity.platform), readings.count < used.count { continue }
      sources.append(availability(entity, device: name, label: "\(name): \(label)", &findings))
      device.merge = device.merge || reader.merges
      options.append(reader.options)
    }
    guard !device.properties.isEmpty else { return }
    // An option is one of the whole device.
    if options.count == 1 { device.options = options[0] }
    device.availability = shared(sources, name, &findings)
    findings.devices.append(device)
  }

  /// Whether an entity has no value that lasts, or one about the device itself.
  private func isSkipped(_ entity: Entity) -> Bool {
    if EntityPlatform.skipped.contains(entity.platform) { return true }
    guard !includesDiagnostic, EntityPlatform.readings.contains(entity.platform) else {
      return false
    }
    if entity.config["enabled_by_default"] == false { return true }
    return entity.config["entity_category"] == "diagnostic"
      && entity.config["device_class"] != "battery"
  }

  /// The entity's properties, with identifiers that are unique in the device.
  ///
  /// An entity with the name of its device keeps plain identifiers such as `power`, and so does its
  /// only one with several values. Others use the entity's name as a prefix.
  private static func renamed(
    _ reader: EntityReader,
    device: String,
    isOnly: Bool,
    _ names: inout PropertyNames
  ) -> [ImportedProperty] {
    let entity = reader.entity
    var stem = entity.name ?? ""
    if stem.hasPrefix(device), let next = stem.dropFirst(device.count).first, " _-:".contains(next)
    {
      stem = stem.dropFirst(device.count + 1).trimmedSpace
    }
    let isMain = isOnly || stem.isEmpty || PropertyNames.word(stem) == PropertyNames.word(device)
    let prefix = isMain ? "" : PropertyNames.word(stem)
    var ids: [String: String] = [:]
    for property in reader.properties {
      let wanted: String
      if prefix.isEmpty {
        wanted =
          reader.isSingle && property.id == "value"
          ? PropertyNames.word(entity.objectID) : property.id
      } else {
        wanted = reader.isSingle ? prefix : "\(prefix)_\(property.id)"
      }
      // The power that a plug measures is not the `power` that switches it.
      let isMeasured = wanted == "power" && property.isReadOnly && property["type"] == "number"
      ids[property.id] = names.unique(isMeasured ? "active_power" : wanted)
    }
    return reader.properties.map { property in
      var property = property
      property.id = ids[property.id] ?? property.id
      if property.id == "contact", property["type"] == "boolean", property["decode"] == nil,
        property["on"] == nil, property["off"] == nil
      {
        // Without these words, true would be a closed door, as Zigbee2MQTT reports it.
        (property["on"], property["off"]) = (true, false)
      }
      property.describe(entity, label: isMain ? "" : stem, isSingle: reader.isSingle)
      property.renameOthers { ids[$0] }
      let aliases = property["aliases"]?.elements?.compactMap(\.string) ?? []
      if !aliases.isEmpty, !isMain || !aliases.allSatisfy({ names.reserve($0) }) {
        property["aliases"] = Optional.none
      }
      return property
    }
  }

  // MARK: - Availability

  private func availability(
    _ entity: Entity,
    device: String,
    label: String,
    _ findings: inout Findings
  ) -> [JSONValue] {
    let config = entity.config
    var listed = config.elements("availability") ?? []
    if listed.isEmpty, let topic = config["availability_topic"] {
      var members = [JSONValue.Member("topic", topic)]
      for (from, to) in [
        ("payload_available", "payload_available"),
        ("payload_not_available", "payload_not_available"),
        ("availability_template", "value_template"),
      ] {
        if let value = config[from] { members.append(.init(to, value)) }
      }
      listed = [.object(members)]
    }
    if listed.count > 1, config["availability_mode"] == "any" {
      findings.report(
        .partly,
        label,
        "its availability needs any of \(listed.count) topics; Settle requires all, so none is kept"
      )
      return []
    }
    return listed.compactMap { source in
      guard let topic = source["topic"]?.string, TopicName.problem(topic) == nil else {
        return Optional.none
      }
      var members = [JSONValue.Member("topic", .string(PlaceholderText.escaped(topic)))]
      func word(_ name: String, else standard: String) -> JSONValue {
        source[name].flatMap { $0.isWord ? $0 : Optional.none } ?? .string(standard)
      }
      let on = word("payload_available", else: "online")
      let off = word("payload_not_available", else: "offline")
      var words: [JSONValue.Member] = [.init("online", on), .init("offline", off)]
      if let template = source["value_template"]?.string {
        let report = (try? Template(template)).map { ReportTemplate($0) }
        if case .presence? = report?.place {
          // EMS-ESP: a value counts as available once its member is there.
          findings.report(
            .partly,
            device,
            "without the availability that depends on whether a member is in the reports"
          )
          return Optional.none
        }
        guard let report, case .value(let place) = report.place,
          let found = report.presence(on: on, off: off)
        else {
          findings.report(
            .partly,
            label,
            "the template of its availability cannot be translated: "
              + Excerpt.of(template, limit: 80)
          )
          return Optional.none
        }
        words = found
        if !place.isEmpty {
          let path = place.map { $0.scalarText ?? "" }
          members.append(.init("value", .string(PlaceholderText.pointer(path))))
        }
      }
      guard !on.isSameScalar(as: off) else {
        findings.report(
          .partly,
          label,
          "without its availability, whose payloads for online and offline are the same"
        )
        return Optional.none
      }
      members += words
      return .object(members)
    }
  }

  /// The sources that all entities share, because Settle tracks availability per device.
  private func shared(
    _ sources: [[JSONValue]],
    _ name: String,
    _ findings: inout Findings
  ) -> [JSONValue] {
    guard let first = sources.first else { return [] }
    let common = first.filter { source in sources.allSatisfy { $0.contains(source) } }
    if sources.contains(where: { $0.count > common.count }) {
      findings.report(
        .partly,
        name,
        "without the availability of single entities; Settle tracks it per device"
      )
    }
    return common
  }
}

/// The platforms of entities: which of them can be imported, and how.
enum EntityPlatform {
  /// Platforms without commands.
  static let readings: Set = ["sensor", "binary_sensor", "update"]

  /// Platforms with neither commands nor a value that lasts.
  static let skipped: Set = [
    "device_tracker", "event", "device_automation", "tag", "camera",
    "image", "weather",
  ]

  /// Platforms of entities with several values.
  static let combined: Set = [
    "light", "cover", "valve", "fan", "climate", "water_heater", "humidifier", "vacuum",
  ]

  /// Creates the entity's properties.
  static func read(_ reader: inout EntityReader) {
    let platform = reader.entity.platform
    switch platform {
    case "sensor": SensorEntity.read(&reader)
    case "binary_sensor": SensorEntity.readBinary(&reader)
    case "update": SensorEntity.readUpdate(&reader)
    case "light": LightEntity.read(&reader)
    case "cover", "valve": CoverEntity.read(&reader)
    case "fan": FanEntity.read(&reader)
    case "climate", "water_heater": ClimateEntity.read(&reader)
    case "humidifier": ClimateEntity.readHumidifier(&reader)
    case "vacuum": VacuumEntity.read(&reader)
    case "switch": SingleValueEntity.readSwitch(&reader)
    case "number": SingleValueEntity.readNumber(&reader)
    case "select": SingleValueEntity.readSelect(&reader)
    case "text": SingleValueEntity.readText(&reader)
    case "lock": SingleValueEntity.readLock(&reader)
    case "siren": SirenEntity.read(&reader)
    case "button":
      SingleValueEntity.readAction(&reader, "press", ("press", "payload_press", "PRESS"))
    case "scene":
      SingleValueEntity.readAction(&reader, "activate", ("activate", "payload_on", "ON"))
    case "alarm_control_panel":
      reader.report("an alarm system must not be debounced", .leftOut)
    default:
      reader.report("entities of the kind '\(Excerpt.of(platform))' are not supported", .leftOut)
    }
    if reader.properties.isEmpty, reader.diagnostics.isEmpty {
      reader.report("it has no topic on which something can be set or read", .leftOut)
    }
    if !reader.properties.isEmpty {
      for unused in reader.unused { reader.report("not imported: \(unused)") }
    }
    for (key, note) in [
      ("off_delay", "the gateway shows the last report until the next one"),
      ("expire_after", "the gateway shows the last report, however old it is"),
    ] where reader.config[key].flatMap({ $0.double }) ?? 0 > 0 && !reader.properties.isEmpty {
      reader.report("not imported: \(key); \(note)")
    }
    if reader.config["retain"] == true, !reader.properties.isEmpty {
      reader.report(
        "it asks for retained commands; Settle never retains one, so that none is replayed"
      )
    }
  }
}

/// The topics of gateways in whose place announcements have wildcards.
///
/// OpenMQTTGateway announces what it hears by radio with `+/+/…`, because any gateway may hear it.
/// A device file names one topic, so the gateway that announced the device is taken.
struct GatewayTopics {
  private static let wildcards = "+/+/"

  /// The base topics, such as `home/OMG`, by the names of the gateways.
  private var bases: [String: String] = [:]
  /// The names of all gateways that announced topics with wildcards.
  private var names: Set<String> = []

  init(_ entities: [Entity]) {
    for entity in entities {
      let isOpen = (entity.config.members ?? []).contains { member in
        member.name.hasSuffix("_topic") && member.value.string?.hasPrefix(Self.wildcards) == true
      }
      if isOpen, let name = Self.gateway(of: entity) { names.insert(name) }
    }
    for entity in entities {
      guard let name = entity.config["device"]?["name"]?.string, names.contains(name),
        bases[name] == nil
      else { continue }
      let topics = (entity.config.members ?? []).filter { $0.name.hasSuffix("_topic") }
      let levels = topics.compactMap { $0.value.string?.split(separator: "/") }
      if let own = levels.first(where: { $0.count > 2 && $0[1] == name && $0[0] != "+" }) {
        bases[name] = "\(own[0])/\(name)"
      }
    }
  }

  /// Whether several gateways may have heard the device.
  var areSeveral: Bool { names.count > 1 }

  /// The entity with the base topic of its gateway in place of wildcards; `nil` if it has none, or
  /// its gateway is not announced.
  func resolved(_ entity: Entity) -> Entity? {
    guard let gateway = Self.gateway(of: entity), let base = bases[gateway],
      let members = entity.config.members
    else { return nil }
    var isChanged = false
    let resolved = members.map { member in
      guard member.name.hasSuffix("_topic"), let topic = member.value.string,
        topic.hasPrefix(Self.wildcards)
      else { return member }
      isChanged = true
      return JSONValue.Member(member.name, .string("\(base)/\(topic.dropFirst(4))"))
    }
    guard isChanged else { return nil }
    var entity = entity
    entity.config = .object(resolved)
    return entity
  }

  /// The name of the gateway that announced an entity.
  private static func gateway(of entity: Entity) -> String? {
    entity.config["device"]?["via_device"]?.string
  }
}

/// Sensors, which become read-only properties.
enum SensorEntity {
  /// The classes of sensors that are words or moments.
  private static let texts: Set = ["date", "timestamp", "enum"]
  /// The classes of sensors that are numbers without a unit.
  private static let bareNumbers: Set = ["aqi", "ph", "power_factor", "monetary"]

  static func read(_ reader: inout EntityReader) {
    reader.isSingle = true
    let kind = reader.text("device_class") ?? ""
    if let options = reader.config.elements("options"), let values = ChoiceWords.field(options) {
      return reader.add(reading: ImportedProperty("value", type: "choice", ["values": values]))
    }
    let unit = PlainText.clean(reader.text("unit_of_measurement") ?? "", limit: 20)
    let isNumber =
      !texts.contains(kind)
      && (!unit.isEmpty || bareNumbers.contains(kind) || reader.config["state_class"] != nil)
    var made = ImportedProperty("value", type: isNumber ? "number" : "text")
    if isNumber, !unit.isEmpty { made["unit"] = .string(unit) }
    reader.add(reading: made)
  }

  static func readBinary(_ reader: inout EntityReader) {
    reader.isSingle = true
    if let made = reader.boolean("value") { reader.add(reading: made) }
  }

  /// The installed version of a firmware, and the latest one.
  static func readUpdate(_ reader: inout EntityReader) {
    reader.skip(["command_topic"])
    let isJSON =
      reader.config["value_template"] == nil && reader.config["latest_version_topic"] == nil
    for (id, state, template) in [
      ("installed_version", "state_topic", "value_template"),
      ("latest_version", "latest_version_topic", "latest_version_template"),
    ] {
      var version = ImportedProperty(id, type: "text")
      if isJSON, let topic = reader.topic("state_topic") {
        version.setState(on: topic, at: "/\(id)")
        reader.add(known: version)
      } else if reader.config[state] != nil {
        reader.add(reading: version, state, template: template)
      }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
internal import JSON
internal import Values

/// An announced device, in the terms of a device file.
struct ImportedDevice: Hashable, Sendable {
  /// An identifier that does not change when the device is renamed.
  var identity: String
  var name: String
  /// The room, if the announcement names one.
  var area: String?
  /// The identities of a group's members; empty for a device.
  var members: [String] = []
  /// Who made it, and the identifiers of its announcements to Home Assistant.
  var details = ImportedDetails()
  /// The comment above the device, such as maker and model.
  var comment: String
  /// The common prefix of all its topics, if there is one.
  var topic: String?
  /// A suitable built-in profile; fields that equal the profile's are not written.
  var profile: String?
  /// A profile without properties, used if ``profile`` turns out not to suit.
  var plainProfile: String?
  var lane: String?
  var merge = false
  var options: [String] = []
  /// The same with factors for their numbers, if they have some.
  var optionFactors: [JSONValue.Member] = []
  /// The entries of `availability:`; empty if none are known.
  var availability: [JSONValue] = []
  var properties: [ImportedProperty] = []

  /// The first entries in a device file, of a device as of a group: name, room and details.
  func head(id: String) -> [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    let name = PlainText.clean(name)
    if name != id, !name.isEmpty { members.append(.init("name", .string(name))) }
    if let area = PlainText.nonEmpty(area) { members.append(.init("area", .string(area))) }
    let details = details.members
    if !details.isEmpty { members.append(.init("device", .object(details))) }
    return members
  }

  /// The topics of its commands, with placeholders expanded.
  var commandTopics: [String] { topics(of: "command") }

  /// The topics of its reports, with placeholders expanded.
  var stateTopics: [String] { topics(of: "state") }

  /// Removes properties by the topics of their commands; returns their identifiers.
  mutating func removeProperties(
    whoseCommands isRemoved: (String) -> Bool,
    except known: Set<String>
  ) -> [String] {
    let removed = properties.filter { property in
      !known.contains(property.id) && topic(of: property, "command").map(isRemoved) ?? false
    }.map(\.id)
    properties.removeAll { removed.contains($0.id) }
    for index in properties.indices {
      properties[index].renameOthers { removed.contains($0) ? nil : $0 }
    }
    return removed
  }

  private func topics(of field: String) -> [String] {
    properties.compactMap { topic(of: $0, field) }
  }

  private func topic(of property: ImportedProperty, _ field: String) -> String? {
    property[field]?["topic"]?.string.map { PlaceholderText.expanded($0, topic: topic ?? "") }
  }

  /// Removes the states of properties that would be reported on the topic of their commands;
  /// returns what is to be said of each.
  mutating func dropEchoedStates() -> [String] {
    properties.indices.compactMap { index in
      let property = properties[index]
      guard let reports = topic(of: property, "state"), reports == topic(of: property, "command")
      else { return nil }
      for field in ["state", "confirm", "decode"] { properties[index][field] = Optional.none }
      return
        "\(property.id): without a state; '\(reports)' is also the topic of its commands, which "
        + "the gateway would take for reports"
    }
  }
}

/// Topics on which a bridge itself is controlled.
enum BridgeTopic {
  /// What such a topic ends with.
  private static let actions: Set<Substring> = [
    "permit_join", "restart", "reset", "factory_reset", "remove", "force_remove", "ota_update",
  ]

  /// Whether commands to `topic` let devices join, restart a bridge, or the like.
  static func isCommand(_ topic: String) -> Bool {
    let levels = topic.split(separator: "/", omittingEmptySubsequences: false)
    if let last = levels.last, actions.contains(last) { return true }
    return zip(levels, levels.dropFirst()).contains { level, next in
      level == "bridge" && (next == "request" || next == "config")
    }
  }
}

/// A convention by which devices are announced.
package enum ImportSource: String, CaseIterable, Hashable, Sendable {
  case zigbee2mqtt
  case homeassistant
  case homie
  case tasmota
  case shelly

  /// The display name.
  package var title: String {
    switch self {
    case .zigbee2mqtt: "Zigbee2MQTT"
    case .homeassistant: "Home Assistant discovery"
    case .homie: "Homie 5"
    case .tasmota: "Tasmota"
    case .shelly: "Shelly"
    }
  }

  /// The name of the device file.
  package var fileName: String { "imported-\(rawValue).yaml" }

  /// The name of the record of the last import, which shows the next one what the user has edited.
  package var recordName: String { ".imported-\(rawValue).json" }
}

/// Who made a device, and the identifiers under which it is announced to Home Assistant.
struct ImportedDetails: Hashable, Sendable {
  private(set) var manufacturer: String?
  private(set) var model: String?
  private(set) var url: String?
  private(set) var identifiers: [String]

  /// The maximum number of identifiers, and of bytes of each.
  private static let mostIdentifiers = 20
  private static let longestIdentifier = 200

  init(
    manufacturer: JSONValue? = nil,
    model: JSONValue? = nil,
    url: JSONValue? = nil,
    identifiers: [String] = []
  ) {
    self.manufacturer = PlainText.nonEmpty(manufacturer?.scalarText)
    self.model = PlainText.nonEmpty(model?.scalarText)
    self.url = url?.string.flatMap { WebAddress.isValid($0) && $0.utf8.count <= 1000 ? $0 : nil }
    var known: Set<String> = []
    self.identifiers = identifiers.filter { identifier in
      (1...Self.longestIdentifier).contains(identifier.utf8.count)
        && PlainText.clean(identifier, limit: Self.longestIdentifier) == identifier
        && known.count < Self.mostIdentifiers && known.insert(identifier).inserted
    }
  }

  /// The details in the `device` of an announcement to Home Assistant, its names in full.
  init(announced device: JSONValue) {
    let listed = device["identifiers"].map { $0.elements ?? [$0] } ?? []
    self.init(
      manufacturer: device["manufacturer"],
      model: device["model"],
      url: device["configuration_url"],
      identifiers: listed.compactMap(\.scalarText)
    )
  }

  /// These details, with those of `other` where they lack one.
  func filled(from other: ImportedDetails?) -> ImportedDetails {
    var filled = self
    filled.manufacturer = manufacturer ?? other?.manufacturer
    filled.model = model ?? other?.model
    filled.url = url ?? other?.url
    filled.identifiers += other?.identifiers.filter { !identifiers.contains($0) } ?? []
    return filled
  }

  /// The entries of `device:`.
  var members: [JSONValue.Member] {
    var members: [JSONValue.Member] = []
    for (name, text) in [("manufacturer", manufacturer), ("model", model), ("url", url)] {
      if let text { members.append(.init(name, .string(text))) }
    }
    if !identifiers.isEmpty {
      members.append(.init("identifiers", .array(identifiers.map { .string($0) })))
    }
    return members
  }
}

/// The devices that the files define before an import, and which import wrote them.
struct DefinedDevices {
  /// The files that earlier imports wrote, without those that are empty.
  private(set) var outlines: [ImportSource: YAMLOutline] = [:]
  /// The identifiers in these files.
  private var imported: [ImportSource: Set<String>] = [:]
  private let all: Set<String>
  /// The identifiers of the devices that are set by a topic.
  private var commands: [String: [String]] = [:]
  /// The identifiers of the devices that report on a topic.
  private var reports: [String: [String]] = [:]
  /// The templates of devices that appear with their first message.
  private let templates: [DeviceTemplate]

  /// `devices` are those of all files, and `present` has the files of earlier imports in `folder`.
  ///
  /// - Throws: ``ConfigurationFailure`` for YAML errors in one of these files.
  init(
    _ devices: Registry,
    templates: [DeviceTemplate] = [],
    present: [ImportSource: ImportPlan.ExistingFile],
    folder: String
  ) throws(ConfigurationFailure) {
    self.templates = templates
    all = Set(devices.devices.map(\.id))
    for property in devices.properties where !property.isRetired {
      let id = devices.id(ofDevice: property.device)
      if !property.commandTopic.isEmpty { commands[property.commandTopic, default: []].append(id) }
      for state in property.states { reports[state.topic, default: []].append(id) }
    }
    for source in ImportSource.allCases {
      guard let bytes = present[source]?.file else { continue }
      let path = FilePath.join(folder, source.fileName)
      guard let outline = try YAMLOutline.read(bytes, file: path) else { continue }
      outlines[source] = outline
      let entries = (outline.entries ?? []) + (outline["groups"]?.entries ?? [])
      imported[source] = Set(entries.map(\.key))
    }
  }

  /// The identifiers in all files but that of `source`.
  func identifiers(beside source: ImportSource) -> Set<String> {
    let others = imported.filter { $0.key != source }.values.reduce(into: Set()) {
      $0.formUnion($1)
    }
    return all.subtracting(imported[source] ?? []).union(others)
  }

  /// The device of another file that has the topics of an announced one; `nil` if there is none.
  ///
  /// A device that is not `isNew` is in the file of `source` already. There it stays, unless the
  /// other file is one that people write.
  func owner(of device: ImportedDevice, isNew: Bool, from source: ImportSource) -> String? {
    let own = imported[source] ?? []
    let strangers = isNew ? own : imported.values.reduce(into: own) { $0.formUnion($1) }
    func first(of topics: [String], in owners: [String: [String]]) -> String? {
      topics.lazy.compactMap { owners[$0]?.last { !strangers.contains($0) } }.first
    }
    let topics = device.commandTopics
    if let owner = first(of: topics, in: commands) { return owner }
    // A device that cannot be set is known by its reports.
    if topics.isEmpty, let owner = first(of: device.stateTopics, in: reports) { return owner }
    let template = templates.first { template in topics.contains { template.isSet(by: $0) } }
    return template.map { TemplateMark.unmarked($0.pattern.id) }
  }

  /// Whether a device is set by this topic, or reports on it.
  func has(topic: String) -> Bool { commands[topic] != nil || reports[topic] != nil }
}

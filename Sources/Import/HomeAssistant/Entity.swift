// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Configuration
internal import Devices
internal import JSON
import Values

/// One entity in Home Assistant's discovery messages, with long names.
struct Entity {
  /// The type, such as `light` or `switch`.
  let platform: String
  var config: JSONValue
  /// The discovery topic.
  let topic: String
  /// The identifier within its device.
  let objectID: String
  /// The device that it belongs to.
  var device: DeviceInfo

  struct DeviceInfo: Hashable {
    var identity: String
    /// Its identifiers, and its connections with their types.
    var keys: Set<[String]>
    var name: String?
    var model: String
    var area: String?
    var details: ImportedDetails
  }

  /// The display name; `nil` for the name of the device.
  var name: String? { PlainText.nonEmpty(config["name"]?.string, limit: 80) }

  /// The name of the announcing program.
  var origin: String { config["origin"]?["name"]?.string ?? "" }

  /// Whether a gateway of this program announces it.
  var isOwn: Bool { origin.lowercased() == "settle" }

  /// Reads the entities of one discovery message.
  ///
  /// - Throws: ``Rejection`` when it cannot be read.
  static func all(
    in announcement: Announcement,
    prefix: String
  ) throws(Rejection) -> [Entity] {
    let levels = announcement.topic.dropFirst(prefix.count + 1).split(separator: "/")
    guard announcement.topic.hasPrefix(prefix + "/"), levels.last == "config",
      (3...4).contains(levels.count)
    else { return [] }
    // An empty payload removes the entity.
    if announcement.payload.isEmpty { return [] }
    let json = try announcement.json()
    guard json.members != nil else { throw Rejection("not a JSON object") }
    let config = Abbreviations.expanded(json)
    let device = deviceInfo(config, fallback: announcement.topic)
    guard levels[0] == "device" else {
      return [
        Entity(
          platform: String(levels[0]),
          config: config,
          topic: announcement.topic,
          objectID: String(levels[levels.count - 2]),
          device: device
        )
      ]
    }
    guard let components = config["components"]?.members else {
      throw Rejection("a device without components")
    }
    return components.prefix(1000).compactMap { component in
      // A platform alone removes a component.
      guard let platform = component.value["platform"]?.string,
        let own = component.value.members, own.count > 1
      else { return Optional.none }
      return Entity(
        platform: platform,
        config: .object(own + shared(config, beside: component.value)),
        topic: announcement.topic,
        objectID: component.name,
        device: device
      )
    }
  }

  /// The members that a component inherits from the device's message.
  private static func shared(_ root: JSONValue, beside own: JSONValue) -> [JSONValue.Member] {
    let names = [
      "availability", "availability_mode", "availability_template", "availability_topic",
      "payload_available", "payload_not_available", "command_topic", "state_topic", "qos", "origin",
    ]
    let hasOwn = own["availability"] != nil || own["availability_topic"] != nil
    return names.compactMap { name in
      guard own[name] == nil, !(hasOwn && name.hasPrefix("availability")) else {
        return Optional.none
      }
      return root[name].map { JSONValue.Member(name, $0) }
    }
  }

  private static func deviceInfo(_ config: JSONValue, fallback: String) -> DeviceInfo {
    let device = config["device"] ?? .null
    let ids = device["identifiers"].map { $0.elements ?? [$0] } ?? []
    let links = (device["connections"]?.elements ?? []).compactMap { $0.elements }
    let connections = links.compactMap { $0.last?.scalarText }
    let identity = ids.compactMap(\.scalarText).first ?? connections.first
    let model = [device["manufacturer"]?.scalarText, device["model"]?.scalarText]
    return DeviceInfo(
      identity: identity.map { String($0.prefix(200)) } ?? fallback,
      // Home Assistant compares addresses in lower case.
      keys: Set(ids.compactMap(\.scalarText).map { [$0] })
        .union(links.map { $0.compactMap { $0.scalarText?.lowercased() } }),
      name: (device["name"]?.string).map { PlainText.clean($0) },
      model: model.compactMap(\.self).joined(separator: " "),
      area: device["suggested_area"]?.string.map { PlainText.clean($0) },
      details: ImportedDetails(announced: device)
    )
  }
}

extension [Entity] {
  /// Gives entities one identity whose devices have an identifier or a connection in common, as
  /// Home Assistant does.
  mutating func shareIdentities() {
    /// The identities by the keys of their devices, and what each identity was replaced by.
    var owners: [[String]: String] = [:]
    var replaced: [String: String] = [:]
    func current(_ identity: String) -> String {
      var identity = identity
      while let newer = replaced[identity] { identity = newer }
      return identity
    }
    for entity in self {
      let own = current(entity.device.identity)
      for key in entity.device.keys {
        let known = current(owners[key] ?? own)
        if known != current(own) { replaced[current(own)] = known }
        owners[key] = known
      }
    }
    for place in indices { self[place].device.identity = current(self[place].device.identity) }
  }
}

/// The configuration keys of a property's topics and templates, and what these mean.
struct TopicKeys {
  var command = "command_topic"
  var commandTemplate: String? = "command_template"
  var state = "state_topic"
  var stateTemplate: String? = "value_template"
  /// The variables of the command template for a value.
  var variables: (TemplateValue) -> [String: TemplateValue] = { ["value": $0] }
  /// The variables of the state template besides the report.
  var stateVariables: [String: TemplateValue] = [:]
  /// Whether Home Assistant converts values without a command template too.
  var isConverted = false
  /// What the results of the state template mean, if not the words of the commands.
  var meaning: StateMeaning?
}

extension TopicKeys {
  /// The keys that start with a prefix, such as `PREFIX_command_topic`.
  init(_ prefix: String, stateTemplate suffix: String = "value_template") {
    self.init(
      command: "\(prefix)_command_topic",
      commandTemplate: "\(prefix)_command_template",
      state: "\(prefix)_state_topic",
      stateTemplate: "\(prefix)_\(suffix)"
    )
  }
}

extension ImportedProperty {
  /// Keeps what an entity says of its class, its category and its name.
  ///
  /// `isSingle` states whether the property is all of the entity.
  mutating func describe(_ entity: Entity, label: String, isSingle: Bool) {
    let category = entity.config["entity_category"]
    if isSingle, category == "config" || category == "diagnostic" { self["category"] = category }
    let platform = ["lock", "siren", "fan", "valve"].first { $0 == entity.platform }
    let isMain = isSingle || self["type"] == "boolean"
    if let word = platform ?? entity.config["device_class"]?.string, isMain,
      DeviceClass.words.contains(word)
    {
      self["class"] = .string(word)
    }
    if isSingle, !label.isEmpty, label != Identifiers.title(of: id) {
      self["name"] = .string(label)
    }
  }
}

/// What the announcements of Zigbee2MQTT to Home Assistant say of single properties.
struct EntityDescriptions: Hashable, Sendable {
  private var fields: [String: [JSONValue.Member]] = [:]

  /// Remembers the class, the category and the name of the entity of one property.
  mutating func add(_ entity: Entity) {
    var found: [JSONValue.Member] = []
    if let word = entity.config["device_class"]?.string, DeviceClass.words.contains(word) {
      found.append(.init("class", .string(word)))
    }
    let category = entity.config["entity_category"]
    if let category, category == "config" || category == "diagnostic" {
      found.append(.init("category", category))
    }
    if let name = entity.name { found.append(.init("name", .string(name))) }
    // `switch_child_lock`: the names of some begin with their platform.
    let object = entity.objectID
    let stem = object.hasPrefix(entity.platform + "_") ? entity.platform.count + 1 : 0
    fields[String(object.dropFirst(stem))] = found
  }

  /// Completes the properties of a device with what they lack.
  func complete(_ properties: inout [ImportedProperty]) {
    for place in properties.indices {
      let property = properties[place]
      guard let found = property.names.lazy.compactMap({ fields[$0] }).first else { continue }
      for field in found where properties[place][field.name] == nil {
        let isTitle = field.value.string == Identifiers.title(of: property.id)
        if field.name != "name" || !isTitle { properties[place][field.name] = field.value }
      }
    }
  }
}

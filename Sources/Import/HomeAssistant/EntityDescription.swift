// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
import Values

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
    if isSingle, !label.isEmpty, label != Self.title(of: id) { self["name"] = .string(label) }
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
        let isTitle = field.value.string == ImportedProperty.title(of: property.id)
        if field.name != "name" || !isTitle { properties[place][field.name] = field.value }
      }
    }
  }
}

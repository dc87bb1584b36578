// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// One entity of Home Assistant's discovery, names written out.
struct Entity {
  /// `light`, `switch` and so on.
  let platform: String
  let config: JSONValue
  /// The discovery topic that it came on.
  let topic: String
  /// What tells it from the other entities of its device.
  let objectID: String
  /// What its device is called there.
  let device: DeviceFacts

  struct DeviceFacts: Hashable {
    var identity: String
    var name: String?
    var model: String
  }

  /// What people call the entity; `nil`: as its device.
  var name: String? {
    guard let name = config["name"]?.string.map({ PlainText.clean($0, limit: 80) }), !name.isEmpty
    else { return Optional.none }
    return name
  }

  /// Who announced it.
  var origin: String { config["origin"]?["name"]?.string ?? "" }

  /// The entities of one discovery message, or why there are none.
  static func all(
    in announcement: Announcement,
    prefix: String
  ) -> Result<[Entity], Refusal> {
    let levels = announcement.topic.dropFirst(prefix.count + 1).split(separator: "/")
    guard announcement.topic.hasPrefix(prefix + "/"), levels.last == "config",
      (3...4).contains(levels.count)
    else { return .success([]) }
    // An empty payload says that the entity is gone.
    if announcement.payload.isEmpty { return .success([]) }
    let json: JSONValue
    switch announcement.json() {
    case .failure(let error): return .failure(Refusal(error.reason))
    case .success(let value): json = value
    }
    guard json.members != nil else { return .failure(Refusal("no JSON object")) }
    let config = Abbreviations.expanded(json)
    let objectID = String(levels[levels.count - 2])
    let isDevice = levels[0] == "device"
    guard isDevice else {
      return .success([
        Entity(
          platform: String(levels[0]),
          config: config,
          topic: announcement.topic,
          objectID: objectID,
          device: facts(config, fallback: announcement.topic)
        )
      ])
    }
    guard let components = config["components"]?.members else {
      return .failure(Refusal("a device without components"))
    }
    let device = facts(config, fallback: announcement.topic)
    return .success(
      components.prefix(1000).compactMap { component in
        guard let platform = component.value["platform"]?.string, let own = component.value.members
        else { return Optional.none }
        return Entity(
          platform: platform,
          config: .object(own + shared(config, beside: component.value)),
          topic: announcement.topic,
          objectID: component.name,
          device: device
        )
      }
    )
  }

  /// What a device's components inherit from its root.
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

  private static func facts(_ config: JSONValue, fallback: String) -> DeviceFacts {
    let device = config["device"] ?? .null
    let ids = device["identifiers"].map { $0.elements ?? [$0] } ?? []
    let connections = (device["connections"]?.elements ?? []).compactMap {
      $0.elements?.last?.scalarText
    }
    let identity = ids.compactMap(\.scalarText).first ?? connections.first
    let model = [device["manufacturer"]?.scalarText, device["model"]?.scalarText]
    return DeviceFacts(
      identity: identity.map { String($0.prefix(200)) } ?? fallback,
      name: (device["name"]?.string).map { PlainText.clean($0) },
      model: model.compactMap(\.self).joined(separator: " ")
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON

/// The topics of gateways in whose place announcements have wildcards.
///
/// OpenMQTTGateway announces what it hears by radio with `+/+/…`, because any gateway may hear it. A
/// device file names one topic, so the gateway that announced the device is taken.
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

  /// The entity with the base topic of its gateway in place of wildcards; `nil` if it has none, or its
  /// gateway is not announced.
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
    return isChanged
      ? Entity(
        platform: entity.platform,
        config: .object(resolved),
        topic: entity.topic,
        objectID: entity.objectID,
        device: entity.device
      ) : nil
  }

  /// The name of the gateway that announced an entity.
  private static func gateway(of entity: Entity) -> String? {
    entity.config["device"]?["via_device"]?.string
  }
}

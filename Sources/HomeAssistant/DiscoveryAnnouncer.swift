// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Devices
package import JSON

/// Creates the MQTT discovery messages that announce devices to Home Assistant.
///
/// Topics and members follow Home Assistant's MQTT documentation. The announced command and state
/// topics are Settle's, so that a slider in Home Assistant settles like any other.
package struct DiscoveryAnnouncer: Sendable {
  /// One retained message.
  package struct Message: Hashable, Sendable {
    package var topic: String
    /// The announcement; `nil` removes an earlier one.
    package var payload: JSONValue?

    package init(topic: String, payload: JSONValue?) {
      self.topic = topic
      self.payload = payload
    }
  }

  /// The origin name in this program's announcements.
  package static let origin = "Settle"

  private let base: String
  private let prefix: String
  private let format: DiscoveryConfiguration.Format
  private let version: String

  /// `version` is this program's version, which Home Assistant shows.
  package init(baseTopic: String, configuration: DiscoveryConfiguration, version: String) {
    base = baseTopic
    prefix = configuration.prefix
    format = configuration.format
    self.version = version
  }

  /// Whether a topic starts with the discovery prefix; allocates nothing.
  package func matchesPrefix(_ topic: Span<UInt8>) -> Bool {
    let bytes = prefix.utf8
    guard topic.count > bytes.count, topic[bytes.count] == UInt8(ascii: "/") else { return false }
    var index = 0
    for byte in bytes {
      guard topic[index] == byte else { return false }
      index += 1
    }
    return true
  }

  /// The topic on which Home Assistant publishes `online` after a start.
  package var birthTopic: String { "\(prefix)/status" }

  /// The topic on which the gateway publishes a device's availability.
  ///
  /// The device identifier `status` is reserved, so no property has this topic.
  package func availabilityTopic(ofDevice id: String) -> String { "\(statusTopic)/\(id)" }

  /// The retained topics on which the gateway shows the lamps of a device.
  package func lightTopics(of device: Device) -> [String] {
    Light.all(in: device).map { light in
      "\(base)/\(device.id)/\(device.properties[light.main].id)/light"
    }
  }

  /// The topic on which the gateway shows whether commands of a device fail; `nil` for a device that
  /// cannot confirm any.
  package func problemTopic(of device: Device) -> String? {
    device.showsProblems ? device.problemTopic(below: base) : nil
  }

  /// The availability message of a device; `nil` for a device that does not report it.
  package func availability(of device: Device, isOnline: Bool) -> Message? {
    guard !device.availability.isEmpty else { return nil }
    return Message(
      topic: availabilityTopic(ofDevice: device.id),
      payload: .string(isOnline ? "online" : "offline")
    )
  }

  /// The topic filters of all announcements, this program's and others'.
  package var filters: [String] { ["\(prefix)/device/+/config", "\(prefix)/+/+/+/config"] }

  /// The topic of a whole device's announcement.
  package func topic(ofDevice id: String) -> String { "\(prefix)/device/\(id)/config" }

  /// The messages that announce a device.
  ///
  /// There is one message for the device or one for each entity, depending on the format, and none
  /// for a device without properties. `earlier` has the platforms of the entities in the previous
  /// announcement by name. A device's message names those that are gone, because Home Assistant
  /// keeps an entity that is merely left out. Where an entity has another platform now, a message
  /// before removes it from the old one.
  package func messages(
    for device: Device,
    replacing earlier: [String: String] = [:]
  ) -> [Message] {
    let entities = EntityPlan(device, base: base).entities
    guard !entities.isEmpty else { return [] }
    switch format {
    case .device:
      let now = Dictionary(uniqueKeysWithValues: entities.map { ($0.name, $0.platform) })
      let gone = earlier.filter { now[$0.key] != $0.value }.sorted { $0.key < $1.key }
      let components = entities.map { entity in
        JSONValue.Member(entity.name, .object(entity.members(of: device, base: base)))
      }
      func message(_ keeps: (String) -> Bool, _ gone: [(key: String, value: String)]) -> Message {
        let removed = gone.map { JSONValue.Member($0.key, .object(["p": .string($0.value)])) }
        let members =
          about(device) + [.init("cmps", .object(components.filter { keeps($0.name) } + removed))]
          + availability(of: device) + [.init("qos", 1)]
        return Message(topic: topic(ofDevice: device.id), payload: .object(members))
      }
      let moved = gone.filter { now[$0.key] != nil }
      let last = message({ _ in true }, gone.filter { now[$0.key] == nil })
      guard !moved.isEmpty else { return [last] }
      return [message({ name in !moved.contains { $0.key == name } }, gone), last]
    case .component:
      return entities.map { entity in
        // Home Assistant before 2025.3 needs this with color modes, and newer ones warn of it.
        let more: [JSONValue.Member] =
          entity.platform == "light" ? [.init("color_mode", true)] : []
        let own = entity.members(of: device, base: base).filter { $0.name != "p" }
        let isApart = own.contains { $0.name == "availability" }
        let members =
          own + more + about(device) + (isApart ? [] : availability(of: device))
          + [.init("qos", 1)]
        let topic = "\(prefix)/\(entity.platform)/\(device.id)/\(entity.name)/config"
        return .init(topic: topic, payload: .object(members))
      }
    }
  }

  /// Whether an announcement comes from this program with this base topic.
  package func isOwn(_ announcement: JSONValue) -> Bool {
    guard announcement["o"]?["name"]?.string == Self.origin,
      case .array(let sources) = announcement["availability"]
    else { return false }
    return sources.first?["topic"]?.string == statusTopic
  }

  /// The platforms of the entities in a device's message, by name.
  package static func entities(in announcement: JSONValue?) -> [String: String] {
    guard case .object(let components) = announcement?["cmps"] else { return [:] }
    return components.reduce(into: [:]) { found, component in
      found[component.name] = component.value["p"]?.string
    }
  }

  /// The device's availability topic in one of this program's announcements.
  package func availabilityTopic(in announcement: JSONValue) -> String? {
    guard case .array(let sources) = announcement["availability"], sources.count > 1 else {
      return nil
    }
    let topic = sources[1]["topic"]?.string
    return topic?.hasPrefix("\(statusTopic)/") == true ? topic : nil
  }

  /// The topics of lamps and of failed commands in one of this program's announcements.
  package func stateTopics(in announcement: JSONValue) -> [String] {
    var entities = [announcement]
    if case .object(let components) = announcement["cmps"] { entities += components.map(\.value) }
    return entities.compactMap { entity in
      guard let topic = entity["state_topic"]?.string, topic.hasPrefix("\(base)/") else {
        return nil
      }
      let isLight = entity["schema"] == "json" && topic.hasSuffix("/light")
      let isProblem = topic.hasPrefix("\(statusTopic)/") && topic.hasSuffix("/problem")
      return isLight || isProblem ? topic : nil
    }
  }

  private var statusTopic: String { "\(base)/status" }

  private func about(_ device: Device) -> [JSONValue.Member] {
    let details = device.details
    let own = Entity.uniqueID(base, device.id)
    let ids = [own] + (details?.identifiers.filter { $0 != own } ?? [])
    var members: [JSONValue.Member] = [
      .init("ids", .array(ids.map { .string($0) })),
      .init("name", .string(device.name)),
    ]
    let shown = [("mf", details?.manufacturer), ("mdl", details?.model), ("cu", details?.url)]
    for (name, text) in shown {
      if let text { members.append(.init(name, .string(text))) }
    }
    if let area = device.area { members.append(.init("suggested_area", .string(area))) }
    return [
      .init("dev", .object(members)),
      .init("o", .object(["name": .string(Self.origin), "sw": .string(version)])),
    ]
  }

  /// The gateway's status topic, and the topic on which it publishes the device's availability.
  ///
  /// The device's own topics are not used. Home Assistant takes a topic without a message for an
  /// offline device, and many devices never publish their availability.
  private func availability(of device: Device) -> [JSONValue.Member] {
    var topics = [statusTopic]
    if !device.availability.isEmpty { topics.append(availabilityTopic(ofDevice: device.id)) }
    let sources = topics.map { JSONValue.object(["topic": .string($0)]) }
    return [.init("availability", .array(sources)), .init("availability_mode", "all")]
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

package import Configuration
package import Devices
package import JSON

/// What Home Assistant is told about devices, so that it shows them without being configured.
///
/// Topics and members are those of its MQTT documentation. Commands go to Settle's topics and the
/// targets come back from them, so that a slider there settles like any other.
package struct DiscoveryAnnouncer: Sendable {
  /// One retained message.
  package struct Message: Hashable, Sendable {
    package var topic: String
    /// `nil`: what was announced there is taken back.
    package var payload: JSONValue?

    package init(topic: String, payload: JSONValue?) {
      self.topic = topic
      self.payload = payload
    }
  }

  /// What the announcements of this program say they come from.
  package static let origin = "Settle"

  private let base: String
  private let prefix: String
  private let format: DiscoveryConfiguration.Format
  private let version: String

  /// `version` is this program's, shown with its announcements.
  package init(baseTopic: String, configuration: DiscoveryConfiguration, version: String) {
    base = baseTopic
    prefix = configuration.prefix
    format = configuration.format
    self.version = version
  }

  /// Whether a topic begins like those that are of interest here; allocates nothing.
  package func mayMean(_ topic: Span<UInt8>) -> Bool {
    let bytes = prefix.utf8
    guard topic.count > bytes.count, topic[bytes.count] == UInt8(ascii: "/") else { return false }
    var place = 0
    for byte in bytes {
      guard topic[place] == byte else { return false }
      place += 1
    }
    return true
  }

  /// Where Home Assistant says `online` when it has started.
  package var birthTopic: String { "\(prefix)/status" }

  /// Where the gateway says whether a device is there, as far as that is known.
  ///
  /// No device is called `status`, so no property's topics are there.
  package func availabilityTopic(ofDevice id: String) -> String { "\(statusTopic)/\(id)" }

  /// What says whether a device is there; `nil` for a device that never tells.
  package func availability(of device: Device, isOnline: Bool) -> Message? {
    guard !device.availability.isEmpty else { return nil }
    return Message(
      topic: availabilityTopic(ofDevice: device.id),
      payload: .string(isOnline ? "online" : "offline")
    )
  }

  /// Every announcement there is, whoever made it.
  package var filters: [String] { ["\(prefix)/device/+/config", "\(prefix)/+/+/+/config"] }

  /// Where a whole device is announced.
  package func topic(ofDevice id: String) -> String { "\(prefix)/device/\(id)/config" }

  /// Announces a device: one message, or one for each entity; none if it has nothing to control.
  ///
  /// Of the entities in `earlier`, by name with their platform, those that the device has no more
  /// are taken back: a message for a whole device must name them, to be left out is not enough.
  package func messages(
    for device: Device,
    replacing earlier: [String: String] = [:]
  ) -> [Message] {
    let entities = EntityPlan(device, base: base).entities
    guard !entities.isEmpty else { return [] }
    switch format {
    case .device:
      let components = entities.map { entity in
        JSONValue.Member(entity.name, .object(entity.members(of: device, base: base)))
      }
      let names = Set(entities.map(\.name))
      let gone = earlier.filter { !names.contains($0.key) }.sorted { $0.key < $1.key }
        .map { JSONValue.Member($0.key, .object(["p": .string($0.value)])) }
      let members =
        about(device) + [.init("cmps", .object(components + gone))] + availability(of: device)
        + [.init("qos", 1)]
      return [.init(topic: topic(ofDevice: device.id), payload: .object(members))]
    case .component:
      return entities.map { entity in
        let members =
          entity.members(of: device, base: base).filter { $0.name != "p" } + about(device)
          + availability(of: device) + [.init("qos", 1)]
        let topic = "\(prefix)/\(entity.platform)/\(device.id)/\(entity.name)/config"
        return .init(topic: topic, payload: .object(members))
      }
    }
  }

  /// Whether an announcement was made by this program for this base topic, now or earlier.
  package func isOwn(_ announcement: JSONValue) -> Bool {
    guard announcement["o"]?["name"]?.string == Self.origin,
      case .array(let sources) = announcement["availability"]
    else { return false }
    return sources.first?["topic"]?.string == statusTopic
  }

  /// The entities that a message for a whole device names, with their platforms.
  package static func entities(in announcement: JSONValue?) -> [String: String] {
    guard case .object(let components) = announcement?["cmps"] else { return [:] }
    return components.reduce(into: [:]) { found, component in
      found[component.name] = component.value["p"]?.string
    }
  }

  /// The topic of ``availabilityTopic(ofDevice:)`` that an own announcement names.
  package func availabilityTopic(in announcement: JSONValue) -> String? {
    guard case .array(let sources) = announcement["availability"], sources.count > 1 else {
      return nil
    }
    let topic = sources[1]["topic"]?.string
    return topic?.hasPrefix("\(statusTopic)/") == true ? topic : nil
  }

  private var statusTopic: String { "\(base)/status" }

  private func about(_ device: Device) -> [JSONValue.Member] {
    [
      .init(
        "dev",
        .object([
          "ids": .array([.string(Entity.uniqueID(base, device.id))]), "name": .string(device.name),
        ])
      ),
      .init("o", .object(["name": .string(Self.origin), "sw": .string(version)])),
    ]
  }

  /// The gateway's last will, and what the gateway says of the device.
  ///
  /// The device's own topics would not do: to Home Assistant a topic on which nothing came yet
  /// means that the device is away, and many never say a word.
  private func availability(of device: Device) -> [JSONValue.Member] {
    var topics = [statusTopic]
    if !device.availability.isEmpty { topics.append(availabilityTopic(ofDevice: device.id)) }
    let sources = topics.map { JSONValue.object(["topic": .string($0)]) }
    return [.init("availability", .array(sources)), .init("availability_mode", "all")]
  }
}

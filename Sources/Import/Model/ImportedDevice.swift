// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

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

  init(identity: String, name: String, comment: String) {
    self.identity = identity
    self.name = name
    self.comment = comment
  }

  /// The topics of its commands, with placeholders expanded.
  var commandTopics: [String] { topics(of: "command") }

  /// The topics of its reports, with placeholders expanded.
  var stateTopics: [String] { topics(of: "state") }

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

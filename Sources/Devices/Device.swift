// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
package import LastOut
package import Values

/// A device: its properties and the settings that they share.
package struct Device: Hashable, Sendable {
  package var id: String
  package var name: String
  /// Where it is, such as a room; `nil` if nothing says so.
  package var area: String?
  /// What it is, in the words of ``DeviceClass``; `nil` if nothing says so.
  package var deviceClass: String?
  /// Who made it; `nil` if nothing says so.
  package var details: DeviceDetails?
  /// Whether the panel shows it.
  package var isOnPanel = true
  /// The lane that its commands pass; `nil` for the default lane.
  package var lane: String?
  /// Whether pending properties with the same command topic share one message.
  package var merge = false
  /// Members of a device-level set that are sent with a command and never on their own.
  package var options: [String] = []
  /// What the numbers of some of these are multiplied by, such as 1000 for milliseconds.
  package var optionFactors: [String: Double] = [:]
  package var availability: [AvailabilitySource] = []
  /// Where it reports that it is awake; `nil` for a device that does not sleep.
  package var awake: AwakeSource?
  /// The devices that it stands for; `nil` for a device of its own.
  package var group: DeviceGroup?
  package var properties: [Property]

  package init(id: String, name: String, properties: [Property]) {
    self.id = id
    self.name = name
    self.properties = properties
  }

  /// Whether an availability source is that of the device itself, rather than of its bridge: its
  /// topic is beside those of the commands and reports, not only at the top of all topics.
  ///
  /// `isShared` states that other devices have the source too, as the channels of one do.
  package func isOwn(_ source: AvailabilitySource, isShared: Bool) -> Bool {
    if source.isBelowDevice { return true }
    let levels = Self.levels(of: source.topic).dropLast()
    if levels.isEmpty || isShared && levels.count == 1 { return false }
    return properties.contains { property in
      (property.states.map(\.topic) + [property.command.topic]).contains {
        Self.levels(of: $0).starts(with: levels)
      }
    }
  }

  /// The levels of a topic; those that tell Tasmota's kinds of topics apart are the same.
  private static func levels(of topic: String) -> [Substring] {
    topic.split(separator: "/", omittingEmptySubsequences: false).map {
      ["cmnd", "stat", "tele"].contains($0) ? "tele" : $0
    }
  }

  /// An option as the device expects it: a number in the device's unit.
  package func option(_ member: JSONValue.Member) -> JSONValue.Member {
    // A number in other digits than its shortest ones arrives as a text.
    let written = member.value.string.flatMap { NumberText.parse($0) }
    guard let number = member.value.double ?? written else { return member }
    let factor = optionFactors[member.name] ?? 1
    return JSONValue.Member(member.name, JSONValue(shortest: number * factor))
  }
}

/// Who made a device, and by which identifiers other programs announce it.
package struct DeviceDetails: Hashable, Sendable {
  package var manufacturer: String?
  package var model: String?
  /// Where people configure it, an `http` or `https` address.
  package var url: String?
  /// The identifiers under which others announce the same device to Home Assistant.
  package var identifiers: [String] = []

  package init() {}
}

/// What makes a device a group: the devices that it stands for.
package struct DeviceGroup: Hashable, Sendable {
  /// The ids of its members, in order; none is a group.
  package var members: [String]

  package init(members: [String]) { self.members = members }

  /// The properties that all members have and that can be changed, each with what all of them
  /// allow.
  ///
  /// The order is that of the first member. Each change of a group's property is a change of each
  /// member's; where it has a command topic, one message there may carry the commands of all.
  package static func sharedProperties(of members: [Device]) -> [Property] {
    guard let first = members.first else { return [] }
    return first.properties.filter { !$0.isReadOnly }.compactMap { property in
      members.dropFirst().reduce(Optional(asGroup(property))) { shared, member in
        guard let shared, let other = member.properties.first(where: { $0.id == shared.id }) else {
          return nil
        }
        return shared.shared(with: other)
      }
    }
  }

  /// A member's property as the group's, without a command topic.
  private static func asGroup(_ property: Property) -> Property {
    var shared = Property(
      id: property.id,
      kind: property.kind,
      policy: property.policy,
      command: .none,
      ttl: property.ttl
    )
    shared.name = property.name
    shared.aliases = property.aliases
    shared.confirm = property.states.isEmpty ? nil : property.confirm
    shared.urgent = property.urgent
    return shared
  }
}

extension Property {
  /// The property with what `other` allows too; `nil` where no value is allowed by both.
  fileprivate func shared(with other: Property) -> Property? {
    guard !other.isReadOnly, let kind = kind.shared(with: other.kind) else { return nil }
    var shared = self
    shared.kind = kind
    shared.aliases = aliases.filter { other.aliases.contains($0) }
    shared.urgent = urgent.filter { other.urgent.contains($0) }
    if other.policy.delay > policy.delay { shared.policy = other.policy }
    shared.ttl = max(ttl, other.ttl)
    if name != other.name { shared.name = nil }
    if let confirm, let theirs = other.confirm, !other.states.isEmpty {
      shared.confirm?.within = max(confirm.within, theirs.within)
      shared.confirm?.backoff = max(confirm.backoff, theirs.backoff)
    } else {
      shared.confirm = nil
    }
    return shared
  }
}

extension ValueKind {
  /// The values that both types have; `nil` where there are none.
  fileprivate func shared(with other: ValueKind) -> ValueKind? {
    switch (self, other) {
    case (.number(let mine), .number(let theirs)):
      return mine.shared(with: theirs).map { .number($0) }
    case (.integer(let mine), .integer(let theirs)), (.integer(let mine), .number(let theirs)),
      (.number(let mine), .integer(let theirs)):
      return mine.shared(with: theirs).map { .integer($0) }
    case (.choice(let mine), .choice(let theirs)):
      let words = mine.filter { theirs.contains($0) }
      return words.isEmpty ? nil : .choice(words)
    case (.action(let mine), .action(let theirs)):
      if mine.isEmpty { return .action(theirs) }
      if theirs.isEmpty { return self }
      let words = mine.filter { theirs.contains($0) }
      return words.isEmpty ? nil : .action(words)
    case (.boolean, .boolean), (.text, .text), (.color, .color): return self
    case (.number, _), (.integer, _), (.boolean, _), (.choice, _), (.text, _), (.color, _),
      (.action, _):
      return nil
    }
  }
}

extension NumberRule {
  /// The numbers that both rules allow; each member snaps them to its own grid.
  fileprivate func shared(with other: NumberRule) -> NumberRule? {
    var rule = self
    if let range, let theirs = other.range {
      guard range.overlaps(theirs) else { return nil }
      rule.range = range.clamped(to: theirs)
    } else {
      rule.range = range ?? other.range
    }
    if step != other.step { rule.step = nil }
    if unit != other.unit { rule.unit = nil }
    if display != other.display { rule.display = nil }
    return rule
  }
}

/// Named values of several properties, which are set at one instant.
package struct Scene: Hashable, Sendable {
  /// One property and its value.
  package struct Part: Hashable, Sendable {
    /// `device/property`.
    package var key: String
    package var value: Value

    package init(key: String, value: Value) {
      self.key = key
      self.value = value
    }
  }

  package var id: String
  package var parts: [Part]

  package init(id: String, parts: [Part]) {
    self.id = id
    self.parts = parts
  }

  /// The properties and their values; without those that a reload has removed.
  package func values(in registry: Registry) -> [(key: KeyIndex, value: Value)] {
    parts.compactMap { part in
      registry.index(ofKey: part.key.utf8.span).map { ($0, part.value) }
    }
  }
}

/// A topic on which a device, or its bridge, reports whether it is online.
///
/// A device is online while every one of its sources is.
package struct AvailabilitySource: Hashable, Sendable {
  package var topic: String
  package var value: JSONPointer
  /// The report that means online; an array lists alternatives, and null is any other report.
  package var online: JSONValue
  /// The report that means offline; as ``online``.
  package var offline: JSONValue
  /// Whether the topic is one below the device's own, its `topic`.
  package var isBelowDevice: Bool

  package init(
    topic: String,
    value: JSONPointer,
    online: JSONValue,
    offline: JSONValue,
    isBelowDevice: Bool = false
  ) {
    self.topic = topic
    self.value = value
    self.online = online
    self.offline = offline
    self.isBelowDevice = isBelowDevice
  }

  /// Reads a report; `nil` when it means neither online nor offline.
  ///
  /// `payload` is the parsed JSON, or a bare payload as a string. Such a word counts also where the
  /// value is a member: Zigbee2MQTT 1.x says `offline`, and later ones `{"state":"offline"}`.
  package func isOnline(in payload: JSONValue) -> Bool? {
    guard let found = value.value(in: payload) ?? payload.string.map({ .string($0) }) else {
      return nil
    }
    if found.isSame(asAnyOf: online) { return true }
    if found.isSame(asAnyOf: offline) { return false }
    guard online == .null || offline == .null, found.scalarText != nil else { return nil }
    return online == .null
  }
}

extension JSONValue {
  /// Whether this scalar means the same as `words`, or as one of them.
  func isSame(asAnyOf words: JSONValue) -> Bool {
    if case .array(let alternatives) = words {
      return alternatives.contains { isSameScalar(as: $0) }
    }
    return isSameScalar(as: words)
  }
}

/// A topic on which a device that sleeps most of the time reports itself when it is awake.
package struct AwakeSource: Hashable, Sendable {
  package var topic: String
  /// The payload that means awake, an array lists alternatives; `nil`: any payload does.
  package var value: JSONValue?

  package init(topic: String, value: JSONValue? = nil) {
    self.topic = topic
    self.value = value
  }

  /// Whether a report means that the device is awake.
  ///
  /// `payload` is the parsed JSON, or a bare payload as a string.
  package func isAwake(in payload: JSONValue) -> Bool {
    value.map { payload.isSame(asAnyOf: $0) } ?? true
  }
}

/// What a device or a property is for, in Home Assistant's words.
///
/// Source: the enumerations `…DeviceClass` of Home Assistant's core, by platform.
package enum DeviceClass {
  package static let covers: Set = [
    "awning", "blind", "curtain", "damper", "door", "garage", "gate", "shade", "shutter", "window",
  ]
  package static let switches: Set = ["outlet", "switch"]
  package static let buttons: Set = ["identify", "restart", "update"]
  /// What happens at a moment; `remote` is this project's word for any button.
  package static let events: Set = ["button", "doorbell", "remote"]
  package static let binarySensors: Set = [
    "battery", "battery_charging", "carbon_monoxide", "cold", "connectivity", "door",
    "garage_door", "gas", "heat", "light", "lock", "moisture", "motion", "moving", "occupancy",
    "opening", "plug", "power", "presence", "problem", "running", "safety", "smoke", "sound",
    "tamper", "update", "vibration", "window",
  ]
  package static let numbers: Set = [
    "absolute_humidity", "apparent_power", "aqi", "area", "atmospheric_pressure", "battery",
    "blood_glucose_concentration", "carbon_dioxide", "carbon_monoxide", "conductivity", "current",
    "data_rate", "data_size", "distance", "duration", "energy", "energy_distance",
    "energy_storage", "frequency", "gas", "humidity", "illuminance", "irradiance", "moisture",
    "monetary", "nitrogen_dioxide", "nitrogen_monoxide", "nitrous_oxide", "ozone", "ph", "pm1",
    "pm10", "pm25", "pm4", "power", "power_factor", "precipitation", "precipitation_intensity",
    "pressure", "reactive_energy", "reactive_power", "signal_strength", "sound_pressure", "speed",
    "sulphur_dioxide", "temperature", "temperature_delta", "volatile_organic_compounds",
    "volatile_organic_compounds_parts", "voltage", "volume", "volume_flow_rate", "volume_storage",
    "water", "weight", "wind_direction", "wind_speed",
  ]
  /// What has no class in Home Assistant, but an entity of its own.
  package static let own: Set = [
    "fan", "lamp", "lock", "remote", "siren", "thermostat", "valve",
  ]
  /// The rest of Home Assistant's words.
  private static let others: Set = [
    "date", "dehumidifier", "enum", "firmware", "humidifier", "motion", "receiver", "speaker",
    "timestamp", "tv",
  ]

  /// All words.
  package static let words: Set = [
    covers, switches, buttons, events, binarySensors, numbers, own, others,
  ].reduce(into: []) { $0.formUnion($1) }
}

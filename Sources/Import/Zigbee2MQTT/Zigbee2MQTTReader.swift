// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON
internal import Values

/// Reads the announcements of one Zigbee2MQTT.
struct Zigbee2MQTTReader {
  let base: String
  /// The lane for its devices, if the settings have one.
  var lane: String?
  /// Whether readings about the devices themselves are imported.
  var includesDiagnostic = false

  /// The maximum length of a friendly name, in bytes.
  private static let longestName = 500

  private struct Member {
    let name: String
    let exposes: [JSONValue]
  }

  /// Reads the devices of `bridge/devices` and the groups of `bridge/groups`, sorted by name.
  func findings(devices: JSONValue, groups: JSONValue?) -> Findings {
    var findings = Findings()
    guard let entries = devices.elements else {
      findings.report(.refused, "\(base)/bridge/devices", "it is not a list of devices")
      return findings
    }
    var members: [String: Member] = [:]
    for (number, entry) in entries.prefix(5000).enumerated() {
      guard entry.members != nil else {
        findings.report(.refused, "\(base)/bridge/devices", "entry \(number + 1) is not an object")
        continue
      }
      if entry["type"]?.string == "Coordinator" { continue }
      guard let device = device(entry, number: number + 1, &findings) else { continue }
      let exposes = entry["definition"]?.elements("exposes") ?? []
      members[device.identity] = Member(name: device.name, exposes: exposes)
      if !device.properties.isEmpty { findings.devices.append(device) }
    }
    for group in groups?.elements ?? [] { read(group: group, members, &findings) }
    findings.devices.sort { ($0.name, $0.identity) < ($1.name, $1.identity) }
    return findings
  }

  private func device(
    _ entry: JSONValue,
    number: Int,
    _ findings: inout Findings
  ) -> ImportedDevice? {
    guard let address = entry["ieee_address"]?.string, (1...64).contains(address.utf8.count) else {
      findings.report(.refused, "\(base)/bridge/devices", "entry \(number) has no ieee_address")
      return nil
    }
    let name = entry["friendly_name"]?.string ?? address
    guard let topic = topic(of: name, &findings) else { return nil }
    if entry["disabled"] == true {
      findings.report(.leftOut, name, "disabled in Zigbee2MQTT")
      return nil
    }
    guard let definition = entry["definition"], definition.members != nil else {
      let isNew = entry["interview_completed"] == false
      findings.report(
        .leftOut,
        name,
        isNew
          ? "its interview has not been completed"
          : "not supported by Zigbee2MQTT, which does not know its features"
      )
      return nil
    }
    let model = [definition["vendor"]?.string, definition["model"]?.string].compactMap(\.self)
    var device = ImportedDevice(
      identity: address,
      name: name,
      comment: (model + [address]).joined(separator: " ")
    )
    device.details = ImportedDetails(
      manufacturer: definition["vendor"],
      model: definition["model"],
      identifiers: ["zigbee2mqtt_\(address)"]
    )
    fill(
      &device,
      topic: topic,
      exposes: definition.elements("exposes") ?? [],
      isUpdatable: definition["supports_ota"] == true,
      &findings
    )
    return device
  }

  /// The device's topic, if it is valid for publishing.
  private func topic(of name: String, _ findings: inout Findings) -> String? {
    let topic = "\(base)/\(name)"
    guard !name.isEmpty, name.utf8.count <= Self.longestName else {
      findings.report(
        .refused,
        name.isEmpty ? "\(base)/bridge/devices" : name,
        name.isEmpty
          ? "a device has an empty name"
          : "its name has \(name.utf8.count) bytes; at most \(Self.longestName) are accepted"
      )
      return nil
    }
    if let problem = TopicName.problem(topic) {
      findings.report(.refused, name, problem)
      return nil
    }
    return topic
  }

  private func fill(
    _ device: inout ImportedDevice,
    topic: String,
    exposes: [JSONValue],
    isUpdatable: Bool = false,
    _ findings: inout Findings
  ) {
    var reader = ExposeReader(exposes, includesDiagnostic: includesDiagnostic)
    if isUpdatable { reader.addUpdate() }
    for diagnostic in reader.diagnostics {
      findings.report(diagnostic.kind, "\(device.name): \(diagnostic.name)", diagnostic.reason)
    }
    if !reader.skipped.isEmpty {
      findings.report(.diagnostic, device.name, reader.skipped.joined(separator: ", "))
    }
    device.topic = topic
    device.lane = lane
    device.properties = reader.properties
    device.merge = true
    let kinds = exposes.compactMap { $0["type"]?.string }
    let isLight = kinds.contains("light")
    if isLight { device.options = ["transition"] }
    device.availability = [
      Self.availability("$topic/availability"),
      Self.availability(
        base.contains("/") ? "\(PlaceholderText.escaped(base))/bridge/state" : "$root/bridge/state"
      ),
    ]
    device.plainProfile = "zigbee2mqtt/device"
    let profiles = [
      ("light", "zigbee2mqtt/light"), ("cover", "zigbee2mqtt/cover"),
      ("climate", "zigbee2mqtt/thermostat"), ("switch", "zigbee2mqtt/switch"),
    ]
    device.profile = profiles.first { kinds.contains($0.0) }?.1 ?? "zigbee2mqtt/device"
    if device.profile == "zigbee2mqtt/cover" { device.merge = false }
  }

  private static func availability(_ topic: String) -> JSONValue {
    .object([
      "topic": .string(topic), "value": "/state", "online": "online", "offline": "offline",
    ])
  }

  // MARK: - Groups

  /// A base topic as identifiers of groups have it: the codes of its characters, as in
  /// `getEncodedBaseTopic` of Zigbee2MQTT's lib/extension/homeassistant.ts.
  static func encoded(_ base: String) -> String { base.utf16.map { String($0) }.joined() }

  /// Reads a group, which accepts what all its members accept.
  private func read(
    group: JSONValue,
    _ members: [String: Member],
    _ findings: inout Findings
  ) {
    guard let number = group["id"]?.double, let name = group["friendly_name"]?.string else {
      findings.report(.refused, "\(base)/bridge/groups", "a group has no id or name")
      return
    }
    guard let topic = topic(of: name, &findings) else { return }
    let listed = group.elements("members") ?? []
    let known = listed.compactMap { member in
      member["ieee_address"]?.string.flatMap { members[$0] }
    }
    guard !known.isEmpty else {
      findings.report(.leftOut, name, "a group without known members")
      return
    }
    let exposes = GroupExposes.common(to: known.map(\.exposes))
    guard !exposes.isEmpty else {
      findings.report(.leftOut, name, "a group whose members have nothing to set in common")
      return
    }
    var device = ImportedDevice(
      identity: "\(base)/group/\(NumberText.shortest(number))",
      name: name,
      comment: "group of \(Set(known.map(\.name)).sorted().joined(separator: ", "))"
    )
    device.members = listed.compactMap { $0["ieee_address"]?.string }
    let encoded = Self.encoded(base)
    device.details = ImportedDetails(
      identifiers: ["zigbee2mqtt_\(encoded)_\(NumberText.shortest(number))"]
    )
    fill(&device, topic: topic, exposes: exposes, &findings)
    device.properties.removeAll(where: \.isReadOnly)
    if !device.properties.isEmpty { findings.devices.append(device) }
  }
}

/// The features that all members of a group share, as exposes without endpoints.
enum GroupExposes {
  /// The kinds of devices that Zigbee groups support.
  private static let kinds = ["light", "switch", "cover", "lock"]
  private static let features: Set = [
    "state", "brightness", "color_temp", "color_xy", "color_hs", "position", "tilt",
  ]

  /// The features that every member has, with the range that all of them accept.
  static func common(to members: [[JSONValue]]) -> [JSONValue] {
    for kind in kinds {
      let lists = members.map { features(of: kind, in: $0) }
      guard let first = lists.first, lists.allSatisfy({ !$0.isEmpty }) else { continue }
      let common = first.compactMap { feature -> JSONValue? in
        let others = lists.dropFirst().map { list in
          list.first { $0["name"] == feature["name"] && $0["type"] == feature["type"] }
        }
        let present = others.compactMap(\.self)
        return present.count == others.count ? narrowed(feature, by: present) : Optional.none
      }
      if common.isEmpty { continue }
      return [.object(["type": .string(kind), "features": .array(common)])]
    }
    return []
  }

  /// The features of one kind.
  ///
  /// A lamp counts as a switch too, because it can be switched.
  private static func features(of kind: String, in exposes: [JSONValue]) -> [JSONValue] {
    let owners =
      exposes.first { $0["type"]?.string == kind }
      ?? (kind == "switch" ? exposes.first { $0["type"]?.string == "light" } : Optional.none)
    return (owners?.elements("features") ?? []).compactMap { feature in
      guard let name = feature["name"]?.string, features.contains(name),
        kind != "switch" || name == "state", var members = feature.members
      else { return Optional.none }
      members.removeAll { $0.name == "endpoint" || $0.name == "property" }
      let property = name.hasPrefix("color_") && name != "color_temp" ? "color" : name
      members.append(.init("property", .string(property)))
      return .object(members)
    }
  }

  private static func narrowed(_ feature: JSONValue, by others: [JSONValue]) -> JSONValue? {
    guard var members = feature.members else { return Optional.none }
    for (name, isNarrower) in [
      ("value_min", { (new: Double, old: Double) in new > old }), ("value_max", { $0 < $1 }),
    ] {
      for other in others {
        guard let bound = other[name]?.double,
          let index = members.firstIndex(where: { $0.name == name }),
          let known = members[index].value.double
        else { continue }
        if isNarrower(bound, known) { members[index].value = JSONValue(shortest: bound) }
      }
    }
    return .object(members)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
internal import JSON

/// Groups announcements by source and reads them.
struct AnnouncedSources {
  private(set) var findings: [ImportSource: Findings] = [:]
  private(set) var diagnostics: [ImportDiagnostic] = []
  /// The base topics of all Zigbee2MQTT instances to import.
  private(set) var bases: [String] = []
  /// Base topics whose announcements are copies, forwarded by routes.
  private var displaced: [String] = []
  /// Base topics of Zigbee2MQTT instances that the request leaves out.
  private var unwanted: [String] = []
  private let defined: DefinedDevices

  init(_ announcements: [Announcement], request: ImportPlan.Request, defined: DefinedDevices) {
    self.defined = defined
    let found = announcements.filter { !$0.payload.isEmpty }
    for base in Set(found.compactMap { $0.topic.stem(before: "/bridge/devices") }).sorted() {
      if request.wants(base: base) { bases.append(base) } else { unwanted.append(base) }
    }
    // Where routes forward announcements, the originals are imported.
    if request.base == nil {
      let all = bases
      bases.removeAll { base in request.displaced[base].map { all.contains($0) } ?? false }
      displaced = all.filter { !bases.contains($0) }
    }
    if request.sources.contains(.zigbee2mqtt) { readZigbee2MQTT(announcements, request) }
    if request.sources.contains(.homeassistant) { readHomeAssistant(announcements, request) }
    if request.sources.contains(.homie) {
      let own = announcements.filter { $0.topic.hasSuffix("/$description") }
      if !own.isEmpty { findings[.homie] = HomieReader().findings(own) }
    }
    if request.sources.contains(.shelly) {
      let found = ShellyReader().findings(announcements, wasAsked: request.asksShelly)
      if found != Findings() { findings[.shelly] = found }
    }
    if request.sources.contains(.tasmota) {
      let own = announcements.filter { TasmotaReader.isAnnouncement($0.topic) }
      if !own.isEmpty { findings[.tasmota] = TasmotaReader().findings(own) }
    }
    for source in findings.keys { findings[source]?.dropEchoedStates() }
  }

  private mutating func readZigbee2MQTT(
    _ announcements: [Announcement],
    _ request: ImportPlan.Request
  ) {
    var seen: [String: String] = [:]
    for base in bases {
      func message(_ name: String) -> Announcement? {
        announcements.last { $0.topic == "\(base)/bridge/\(name)" && !$0.payload.isEmpty }
      }
      var found = findings[.zigbee2mqtt] ?? Findings()
      defer { findings[.zigbee2mqtt] = found }
      let groups = message("groups").flatMap { found.json(of: $0) }
      guard let announced = message("devices"), let devices = found.json(of: announced) else {
        continue
      }
      let lane = request.lanes.contains("zigbee") ? "zigbee" : Optional.none
      let reader = Zigbee2MQTTReader(
        base: base,
        lane: lane,
        includesDiagnostic: request.includesDiagnostic
      )
      var own = reader.findings(devices: devices, groups: groups)
      let twice = own.devices.compactMap { seen[$0.identity] }.first
      if let twice {
        own.devices.removeAll { seen[$0.identity] != nil }
        found.report(
          .leftOut,
          announced.topic,
          "the same devices as at \(twice)/bridge/devices, which are imported; --base chooses"
        )
      }
      for device in own.devices { seen[device.identity] = base }
      found.add(own)
    }
  }

  private mutating func readHomeAssistant(
    _ announcements: [Announcement],
    _ request: ImportPlan.Request
  ) {
    let own = announcements.filter {
      $0.topic.hasPrefix(request.prefix + "/") && $0.topic.hasSuffix("/config")
    }
    guard !own.isEmpty else { return }
    typealias Owner = HomeAssistantReader.Owner
    var owners = [Owner(base: request.ownBase, reason: "announced by Settle itself")]
    owners += (bases + displaced).map {
      Owner(base: $0, reason: "from Zigbee2MQTT, imported from \($0)/bridge/devices")
    }
    owners += unwanted.map {
      Owner(
        base: $0,
        reason: "from Zigbee2MQTT at \($0), which \(request.restriction) leaves out",
        reasonIfDefined: "from Zigbee2MQTT at \($0), and in another device file already"
      )
    }
    let reader = HomeAssistantReader(
      prefix: request.prefix,
      owners: owners,
      isDefined: defined.has(topic:),
      includesDiagnostic: request.includesDiagnostic
    )
    let found = reader.findings(own)
    findings[.homeassistant] = found
    // Zigbee2MQTT names the room and the link in its announcements to Home Assistant only.
    guard var bridge = findings[.zigbee2mqtt] else { return }
    for index in bridge.devices.indices {
      let details = bridge.devices[index].details
      guard let own = details.identifiers.first, let described = found.described[own] else {
        continue
      }
      bridge.devices[index].area = described.area
      bridge.devices[index].details = described.details.filled(from: details)
      described.entities.complete(&bridge.devices[index].properties)
    }
    GroupAreas.complete(&bridge.devices, rooms: found.devices.compactMap(\.area))
    findings[.zigbee2mqtt] = bridge
  }
}

/// The rooms of groups and of their members.
///
/// A group is in the room that its members have in common. Many groups are no rooms, such as
/// "all blinds", so a group's name gives its members a room only where other devices are in it.
enum GroupAreas {
  /// Completes the rooms of `devices`; `rooms` are those that announcements name.
  static func complete(_ devices: inout [ImportedDevice], rooms: [String]) {
    var known: [String: String] = [:]
    for room in rooms + devices.compactMap(\.area) {
      known[room.lowercased()] = known[room.lowercased()] ?? room
    }
    var places: [String: Int] = [:]
    for (place, device) in devices.enumerated() { places[device.identity] = place }
    for group in devices.indices where !devices[group].members.isEmpty {
      let members = devices[group].members.compactMap { places[$0] }
      if let room = known[devices[group].name.lowercased()] {
        for place in members + [group] where devices[place].area == nil {
          devices[place].area = room
        }
      } else if devices[group].area == nil, let first = members.first,
        members.allSatisfy({ devices[$0].area == devices[first].area })
      {
        devices[group].area = devices[first].area
      }
    }
  }
}

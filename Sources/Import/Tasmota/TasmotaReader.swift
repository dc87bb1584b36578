// Settle
// SPDX-License-Identifier: Apache-2.0

internal import JSON
internal import Values

/// Reads Tasmota's own discovery, `tasmota/discovery/<mac>/config` and `…/sensors`.
///
/// Source: `xdrv_12_discovery.ino` of Tasmota and the reader of Home Assistant, hatasmota.
struct TasmotaReader {
  private static let prefix = "tasmota/discovery/"

  /// The topic filters of announcements.
  static let filters = ["\(prefix)+/config", "\(prefix)+/sensors"]

  static func isAnnouncement(_ topic: String) -> Bool {
    topic.hasPrefix(prefix) && (topic.hasSuffix("/config") || topic.hasSuffix("/sensors"))
  }

  /// Reads all devices, sorted by name.
  func findings(_ announcements: [Announcement]) -> Findings {
    var findings = Findings()
    var sensors: [String: JSONValue] = [:]
    for announcement in announcements
    where announcement.topic.hasSuffix("/sensors") && !announcement.payload.isEmpty {
      if let json = try? announcement.json() {
        sensors[Self.mac(in: announcement.topic)] = json["sn"]
      }
    }
    for announcement in announcements.sorted(by: { $0.topic < $1.topic })
    where announcement.topic.hasSuffix("/config") && !announcement.payload.isEmpty {
      guard let config = findings.json(of: announcement) else { continue }
      let mac = Self.mac(in: announcement.topic)
      read(config, mac: mac, sensors: sensors[mac] ?? .null, &findings)
    }
    findings.devices.sort { ($0.name, $0.identity) < ($1.name, $1.identity) }
    return findings
  }

  private static func mac(in topic: String) -> String {
    String(topic.dropFirst(prefix.count).prefix { $0 != "/" })
  }

  private func read(
    _ config: JSONValue,
    mac: String,
    sensors: JSONValue,
    _ findings: inout Findings
  ) {
    guard config["ver"]?.double == 1, let topics = TasmotaTopics(config, mac: mac) else {
      findings.report(.refused, "\(Self.prefix)\(mac)/config", "no discovery of version 1")
      return
    }
    if let problem = TopicName.problem(topics.command("Json")) {
      return findings.report(.refused, "\(Self.prefix)\(mac)/config", problem)
    }
    let name = config["dn"]?.string.flatMap { $0.isEmpty ? nil : $0 } ?? mac
    let model = config["md"]?.string ?? ""
    var device = ImportedDevice(
      identity: mac,
      name: name,
      comment: ["Tasmota", model, mac].filter { !$0.isEmpty }.joined(separator: " ")
    )
    device.details = ImportedDetails(
      manufacturer: "Tasmota",
      model: config["md"],
      url: config["ip"]?.string.map { .string("http://\($0)/") }
    )
    device.availability = [
      .object([
        "topic": .string(topics.availability), "online": config["onln"] ?? "Online",
        "offline": config["ofln"] ?? "Offline",
      ])
    ]
    let relays = TasmotaRelays(config, topics: topics)
    device.merge = relays.merges
    device.properties = relays.properties
    for note in relays.notes { findings.report(.partly, name, note) }
    let readings = TasmotaSensors(sensors, topics: topics)
    device.properties += readings.properties
    if !readings.skipped.isEmpty {
      findings.report(.diagnostic, name, readings.skipped.joined(separator: ", "))
    }
    if !device.properties.isEmpty { findings.devices.append(device) }
  }
}

/// The topics of one Tasmota device.
struct TasmotaTopics {
  private let full: String
  private let prefixes: [String]

  /// `nil` unless the announcement has a topic, a full topic and its prefixes.
  init?(_ config: JSONValue, mac: String) {
    guard let topic = config["t"]?.string, let full = config["ft"]?.string,
      let prefixes = config.elements("tp")?.compactMap(\.string), prefixes.count == 3
    else { return nil }
    self.full = full.replaced("%hostname%", by: config["hn"]?.string ?? "")
      .replaced("%id%", by: String(mac.suffix(6))).replaced("%topic%", by: topic)
    self.prefixes = prefixes
  }

  private func topic(_ prefix: Int, _ name: String) -> String {
    let base = full.replaced("%prefix%", by: prefixes[prefix])
    return PlaceholderText.escaped(base.hasSuffix("/") ? base + name : "\(base)/\(name)")
  }

  func command(_ name: String) -> String { topic(0, name) }
  var result: String { topic(1, "RESULT") }
  var state: String { topic(2, "STATE") }
  var sensor: String { topic(2, "SENSOR") }
  var availability: String { topic(2, "LWT") }
  func status(_ name: String) -> String { topic(1, name) }
}

/// What a Tasmota device measures, as `sn` in `…/sensors` lists it.
struct TasmotaSensors {
  private(set) var properties: [ImportedProperty] = []
  private(set) var skipped: [String] = []

  /// Names and units of quantities, from `sensor.py` of hatasmota; `nil` for the unit in the
  /// message.
  private static let quantities: [String: (id: String, unit: String?, key: String?)] = [
    "Temperature": ("temperature", nil, "TempUnit"), "DewPoint": ("dew_point", nil, "TempUnit"),
    "Humidity": ("humidity", "%", nil), "Pressure": ("pressure", nil, "PressureUnit"),
    "SeaPressure": ("sea_pressure", nil, "PressureUnit"), "Illuminance": ("illuminance", "lx", nil),
    "Power": ("active_power", "W", nil), "ApparentPower": ("apparent_power", "VA", nil),
    "ReactivePower": ("reactive_power", "var", nil), "Factor": ("power_factor", "", nil),
    "Voltage": ("voltage", "V", nil), "Current": ("current", "A", nil),
    "Frequency": ("frequency", "Hz", nil), "Total": ("energy", "kWh", nil),
    "Today": ("energy_today", "kWh", nil), "Yesterday": ("energy_yesterday", "kWh", nil),
    "CarbonDioxide": ("co2", "ppm", nil), "eCO2": ("eco2", "ppm", nil),
    "TVOC": ("tvoc", "ppb", nil), "PM1": ("pm1", "µg/m³", nil), "PM2.5": ("pm25", "µg/m³", nil),
    "PM10": ("pm10", "µg/m³", nil), "Distance": ("distance", "cm", nil),
    "Weight": ("weight", "kg", nil), "Moisture": ("soil_moisture", "%", nil),
  ]

  init(_ sensors: JSONValue, topics: TasmotaTopics) {
    var names = PropertyNames()
    for sensor in sensors.members ?? [] {
      guard let values = sensor.value.members else { continue }
      for value in values {
        let label = "\(sensor.name)/\(value.name)"
        guard let known = Self.quantities[value.name] else {
          skipped.append(label)
          continue
        }
        // Meters of several phases have lists.
        let places = value.value.elements.map { Array($0.indices) } ?? []
        guard places.isEmpty ? value.value.double != nil || value.value == .null : true else {
          skipped.append(label)
          continue
        }
        for place in places.isEmpty ? [nil] : places.prefix(3).map({ Optional($0) }) {
          let phase = place.map { "_\($0 + 1)" } ?? ""
          var made = ImportedProperty(names.unique(known.id + phase), type: "number")
          let unit = known.key.flatMap { sensors[$0]?.string } ?? known.unit ?? ""
          let shown = known.key == "TempUnit" && !unit.isEmpty ? "°\(unit)" : unit
          if !shown.isEmpty { made["unit"] = .string(PlainText.clean(shown, limit: 20)) }
          let path = [sensor.name, value.name] + (place.map { ["\($0)"] } ?? [])
          made.setState(on: topics.sensor, at: PlaceholderText.pointer(path))
          properties.append(made)
        }
      }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Testing
import Values

/// Announcements of real installations in `Fixtures/field`.
struct FieldTests {
  private static func announcements(_ name: String) throws -> [Announcement] {
    let json = try Announcement(topic: "", text: Fixture.text("field/\(name).json")).json()
    return (json["retain"]?.members ?? []).map { member in
      Announcement(topic: member.name, text: JSONWriter.text(member.value))
    }
  }

  private static func property(_ key: String, in announcements: [Announcement]) throws -> Property {
    let names = key.split(separator: "/")
    let text = try #require(try Fixture.plan(announcements).files.first).text
    let devices = try Loaded.devices(["a.yaml": text])
    let device = try #require(devices.first { $0.id == names[0] }, "\(devices.map(\.id))")
    return try #require(device.properties.first { $0.id == names[1] }, "\(text)")
  }

  private static func sent(_ text: String, by property: Property) throws -> String {
    var bytes: [UInt8] = []
    let value = try property.value(from: .string(text))
    property.command.payload.render(property.wireValue(of: value), into: &bytes)
    return "\(property.command.topic) \(String(decoding: bytes, as: UTF8.self))"
  }

  private static func shown(_ payload: String, by property: Property) -> String? {
    let document =
      (try? Announcement(topic: "", text: payload).json()) ?? .string(payload)
    return property.states.lazy.compactMap { source -> Value? in
      guard case .value(let wire) = source.reading(of: document) else { return nil }
      return property.value(fromWire: wire)
    }.first?.json.scalarText
  }

  @Test(arguments: [
    ("cond_bool", "sprinkler/station_1", "on", "os/1/cmd 1"),
    ("cond_choice", "air/mode", "heat", "mr/mode/set 1"),
    ("cond_choice", "air/fan_mode", "auto", "mr/f/set 0"),
    ("emptyopt", "curtain/effect", "Sunrise", #"g/cmd {"state":"ON","effect":"Sunrise"}"#),
    ("emptyopt", "curtain/preset", "Relax", "g/p/set Relax"),
    ("emptyopt", "fan/preset", "eco", "gf/p/set eco"),
    ("ems_minmax", "ems-esp-boiler/flow_temp", "45", "ems-esp/boiler/selflowtemp 45"),
    ("espfan", "kitchen/speed", "3", "kitchen/fan/cooker_fan/speed_level/command 3"),
    (
      "espfan", "kitchen/oscillation", "on",
      #"kitchen/fan/cooker_fan/osc/command {"swing":"oscillate_on"}"#
    ),
    ("govee", "lyra-lamp/effect", "火焰", #"gv2mqtt/light/AA/command {"state":"ON","effect":"火焰"}"#),
    ("hexint", "hex/level", "26", "hx/set 1a"), ("hexint", "hex/level2", "16", "hx2/set 16"),
    ("hexint", "hex/level3", "50", "hx3/set 50.0%"),
    ("ifsup", "heatpump/quiet_mode", "Level 1", "hp/cmd/SetQuietMode 1"),
    ("ifsup", "heatpump/holiday", "on", "hp/cmd/SetHoliday 1"),
    ("ifsup", "heatpump/shift", "-3", "hp/cmd/SetZ1 -3"),
    ("ifsup", "heatpump/gain", "2.3", "hp/cmd/Gain 23"),
    ("invcover", "shade/position", "30", "sh/pos/set 70"),
    ("siren_plain", "garage/power", "on", #"cmnd/SIREN/POWER {"state":"ON"}"#),
    ("siren_tasmota", "garage/power", "on", "cmnd/SIREN/POWER ON"),
    ("tilt", "nm04/position", "30", "nm04/cover/position/command 30"),
    ("tilt", "nm04/tilt", "40", "nm04/cover/tilt/command 60"),
    ("valvejson", "master/position", "25", "v/set 25"),
  ])
  func `a command is what Home Assistant would send`(
    name: String,
    key: String,
    text: String,
    sent: String
  ) throws {
    let property = try Self.property(key, in: Self.announcements(name))
    #expect(try Self.sent(text, by: property) == sent)
  }

  @Test(
    arguments: [
      ("cond_bool", "sprinkler/station_1", #"{"state":1}"#, "true"),
      ("cond_bool", "sprinkler/station_1", #"{"state":0}"#, "false"),
      ("cond_choice", "air/mode", #"{"m":3}"#, "cool"),
      ("cond_choice", "air/target_temperature", #"{"t":21}"#, "21"),
      ("cond_choice", "air/fan_mode", #"{"f":0}"#, "auto"),
      ("ems_minmax", "ems-esp-boiler/max_burner_power", #"{"burnmaxpower":100}"#, "100"),
      ("hexint", "hex/level2", #"{"raw":"10"}"#, "16"), ("hexint", "hex/level3", "50%", "50"),
      ("ifsup", "heatpump/quiet_mode", "1", "Level 1"), ("ifsup", "heatpump/holiday", "2", "true"),
      ("ifsup", "heatpump/holiday", "0", "false"), ("ifsup", "heatpump/shift", "-3", "-3"),
      ("ifsup", "heatpump/defrost", "1", "true"), ("ifsup", "heatpump/mode", "2", "Auto"),
      ("ifsup", "heatpump/gain", "23", "2.3"), ("invcover", "shade/position", "70", "30"),
      ("siren_plain", "garage/power", #"{"POWER":"OFF"}"#, "false"),
      ("siren_tasmota", "garage/power", #"{"POWER":"ON"}"#, "true"),
      ("tilt", "nm04/tilt", "60", "40"), ("valvejson", "master/position", "25", "25"),
      ("valvejson", "master/position", #"{"state":"opening","position":25}"#, "25"),
    ] as [(String, String, String, String?)]
  )
  func `a report means what Home Assistant would show`(
    name: String,
    key: String,
    payload: String,
    shown: String?
  ) throws {
    let property = try Self.property(key, in: Self.announcements(name))
    #expect(Self.shown(payload, by: property) == shown)
  }

  @Test(arguments: [
    "cond_bool", "cond_choice", "emptyopt", "ems_minmax", "espfan", "govee", "ifsup", "invcover",
    "longbutton", "siren_plain", "siren_tasmota", "tilt", "valvejson",
  ])
  func `nothing is refused, and no reason is false`(name: String) throws {
    let found = try Fixture.diagnostics(Self.announcements(name))
    #expect(found.filter { $0.hasPrefix("refused") || $0.contains("without a state") } == [])
  }

  @Test func `codes of infrared are sent as they are`() throws {
    let announcements = try Self.announcements("longbutton")
    for (key, text, member) in [
      ("ir-blaster/tv_on", "press", "payload_press"), ("ir-blaster/ac", "on", "payload_on"),
    ] {
      let announced = announcements.compactMap { try? $0.json()[member]?.string }.first
      let property = try Self.property(key, in: announcements)
      #expect(try Self.sent(text, by: property) == "\(property.command.topic) \(announced ?? "")")
    }
  }

  @Test func `filters with arguments are read with them`() throws {
    let found = try Fixture.diagnostics(Self.announcements("hexint"))
    #expect(found == [])
  }

  // MARK: - Covers

  /// A cover whose position is 0 when it is open, and 100 when it is closed.
  private static func cover(_ templates: String) -> [Announcement] {
    let text =
      #"{"name":"Shade","cmd_t":"s","pos_t":"s/pos","set_pos_t":"s/set","#
      + #""pos_open":0,"pos_clsd":100\#(templates)}"#
    return [Announcement(topic: "homeassistant/cover/c/config", text: text)]
  }

  @Test(arguments: [
    ("", "70", "70"), (#","set_pos_tpl":"{\"p\":{{ value }}}""#, #"{"p":70}"#, "70"),
    (#","pos_tpl":"{{ value_json.p }}""#, "70", #"{"p":70}"#),
    (
      #","pos_tpl":"{{ value_json.p }}","set_pos_tpl":"{\"p\":{{ value | int }}}""#, #"{"p":70}"#,
      #"{"p":70}"#
    ),
    // The variable `position` is the percentage, whatever the range is.
    (
      #","pos_tpl":"{{ 100 - value_json.p }}","set_pos_tpl":"{\"p\":{{ position }}}""#,
      #"{"p":30}"#, #"{"p":30}"#
    ),
  ])
  func `a cover with a reversed range and templates moves the right way`(
    templates: String,
    sent: String,
    report: String
  ) throws {
    let position = try Self.property("shade/position", in: Self.cover(templates))
    #expect(try Self.sent("30", by: position) == "s/set \(sent)")
    #expect(Self.shown(report, by: position) == "30")
    #expect(try Fixture.diagnostics(Self.cover(templates)) == [])
  }

  // MARK: - Other entities

  private func diagnostics(_ topic: String, _ payload: String) throws -> [String] {
    try Fixture.diagnostics([Announcement(topic: "homeassistant/\(topic)/config", text: payload)])
  }

  @Test func `a siren has a tone, a duration and a volume`() throws {
    let text =
      #"{"name":"Bell","cmd_t":"b/set","stat_t":"b","state_on":"ringing","state_off":"quiet","#
      + #""av_tones":["fire","door"]}"#
    let siren = [Announcement(topic: "homeassistant/siren/s/config", text: text)]
    let power = try Self.property("bell/power", in: siren)
    #expect(try Self.sent("off", by: power) == #"b/set {"state":"OFF"}"#)
    for report in ["ringing", #"{"state":"ringing"}"#] {
      #expect(Self.shown(report, by: power) == "true")
    }
    for (key, value, member) in [
      ("tone", "fire", #""tone":"fire""#), ("duration", "5", #""duration":5"#),
      ("volume", "0.5", #""volume_level":0.5"#),
    ] {
      let property = try Self.property("bell/\(key)", in: siren)
      #expect(try Self.sent(value, by: property) == #"b/set {"state":"ON",\#(member)}"#)
      #expect(property.implies == [Implication(property: "power", value: .boolean(true))])
    }
    let tone = try Self.property("bell/tone", in: siren)
    #expect(Self.shown(#"{"tone":"door"}"#, by: tone) == "door")
  }

  @Test func `a siren's templates may have a part for each value`() throws {
    let text =
      #"{"name":"Bell","cmd_t":"b/set","stat_t":"b","stat_val_tpl":"{{ value_json.alarm }}","#
      + #""cmd_tpl":"{\"alarm\": \"{{ value }}\"{% if tone is defined %}, \"t\": \"{{ tone }}\""#
      + #"{% endif %}}","cmd_off_tpl":"{\"alarm\": \"OFF\"}","av_tones":["fire","door"],"#
      + #""sup_dur":false,"sup_vol":false}"#
    let siren = [Announcement(topic: "homeassistant/siren/s/config", text: text)]
    let power = try Self.property("bell/power", in: siren)
    #expect(try Self.sent("on", by: power) == #"b/set {"alarm":"ON"}"#)
    #expect(Self.shown(#"{"alarm":"OFF"}"#, by: power) == "false")
    let tone = try Self.property("bell/tone", in: siren)
    #expect(try Self.sent("fire", by: tone) == #"b/set {"alarm":"ON","t":"fire"}"#)
  }

  @Test func `a lock has its latch, and a vacuum its state`() throws {
    let lock = [
      Announcement(
        topic: "homeassistant/lock/l/config",
        text: #"{"name":"Door","cmd_t":"l/set","stat_t":"l","pl_open":"UNLATCH"}"#
      )
    ]
    let open = try Self.property("door/open", in: lock)
    #expect(try Self.sent("OPEN", by: open) == "l/set UNLATCH")
    #expect(Self.shown("LOCKED", by: try Self.property("door/lock", in: lock)) == "true")
    let vacuum = [
      Announcement(
        topic: "homeassistant/vacuum/v/config",
        text: #"{"name":"Robot","cmd_t":"v/set","stat_t":"v","#
          + #""set_fan_spd_t":"v/fan","fanspd_lst":["min","max"]}"#
      )
    ]
    let state = try Self.property("robot/state", in: vacuum)
    #expect(Self.shown(#"{"state":"docked","fan_speed":"max"}"#, by: state) == "docked")
    let speed = try Self.property("robot/fan_speed", in: vacuum)
    #expect(Self.shown(#"{"state":"docked","fan_speed":"max"}"#, by: speed) == "max")
  }

  @Test(arguments: [
    (
      "binary_sensor/a", #"{"name":"A","stat_t":"a","off_dly":5}"#,
      "partly: A: binary_sensor: not imported: off_delay; the gateway shows the last report until "
        + "the next one"
    ),
    (
      "sensor/a", #"{"name":"A","stat_t":"a","exp_aft":60}"#,
      "partly: A: sensor: not imported: expire_after; the gateway shows the last report, however "
        + "old it is"
    ),
    (
      "fan/a", #"{"name":"A","cmd_t":"a","dir_cmd_t":"d","dir_cmd_tpl":"{{ states('x') }}"}"#,
      "left_out: A: fan: direction: its direction_command_template cannot be translated: "
        + "{{ states('x') }}"
    ),
    (
      "vacuum/a", #"{"name":"A","cmd_t":"a","clean_segments_command_template":"{{ value }}"}"#,
      "partly: A: vacuum: not imported: clean_segments_command_template: {{ value }}"
    ),
  ])
  func `what is not supported is listed`(topic: String, payload: String, reason: String) throws {
    #expect(try diagnostics(topic, payload) == [reason])
  }

  @Test func `a component with a platform alone is removed`() throws {
    let text = #"{"dev":{"ids":"b","name":"B"},"o":{"name":"x"},"cmps":{"a":{"p":"switch"}}}"#
    #expect(try diagnostics("device/b", text) == [])
  }

  @Test(arguments: [
    ("{type: boolean, decode: {on: [a, b], off: c}}", ["a": "true", "b": "true", "c": "false"]),
    (
      "{type: boolean, decode: {on: {above: 5}, else: off}}",
      ["6": "true", "5": "false", "x": "false", "-3": "false"]
    ),
    ("{type: boolean, decode: {off: 0, else: on}}", ["0": "false", "50": "true", "off": "true"]),
    (
      "{type: choice, values: [a, b, c], decode: {a: {from: 10}, b: {above: 20}, else: c}}",
      ["10": "a", "20": "a", "21": "b", "9": "c", "x": "c"]
    ),
  ])
  func `a device file may have lists, bounds, and a word for any other report`(
    property: String,
    reports: [String: String]
  ) throws {
    let fields = property.dropLast() + ", state: {topic: t}}"
    let text =
      "d:\n  availability: {topic: u, online: ready, else: offline}\n"
      + "  properties:\n    p: \(fields)\n"
    let device = try #require(try Loaded.devices(["a.yaml": text]).first)
    let read = try #require(device.properties.first)
    for (report, word) in reports { #expect(Self.shown(report, by: read) == word) }
    #expect(device.availability.first?.isOnline(in: "ready") == true)
    #expect(device.availability.first?.isOnline(in: "busy") == false)
  }

  private static let names: [String] = {
    let table = (try? Fixture.text("abbreviations.txt")) ?? ""
    return table.split(separator: "\n").compactMap { line in
      line.split(separator: " ").last.map { String($0) }
    }
  }()

  /// An announcement with all topics and templates that Home Assistant has, and lists of words.
  private static func everything(_ platform: String) throws -> EntityReader {
    let lists: Set = [
      "available_tones", "effect_list", "fan_modes", "fan_speed_list", "modes", "options",
      "preset_modes", "swing_modes",
    ]
    let members = (names + ["fan_modes"]).compactMap { name -> JSONValue.Member? in
      if name.hasSuffix("_topic") { return .init(name, .string("t/\(name)")) }
      if name.hasSuffix("_template") { return .init(name, "{{ value }}") }
      return lists.contains(name) ? .init(name, ["heat", "auto"]) : nil
    }
    let announcement = Announcement(
      topic: "homeassistant/\(platform)/x/config",
      text: JSONWriter.text(.object(members))
    )
    let entities = try Entity.all(in: announcement, prefix: "homeassistant")
    var reader = EntityReader(try #require(entities.first))
    EntityPlatform.read(&reader)
    return reader
  }

  @Test(arguments: [
    "binary_sensor", "button", "climate", "cover", "fan", "humidifier", "light", "lock", "number",
    "select", "sensor", "siren", "switch", "text", "vacuum", "valve", "water_heater",
  ])
  func `where a topic is read its template is too`(platform: String) throws {
    let unused = try Self.everything(platform).unused
    let topics = Set(unused.first?.split(separator: ", ").map { String($0) } ?? [])
    let templates = unused.dropFirst().map { String($0.prefix { $0 != ":" }) }
    #expect(!templates.isEmpty)
    // A color is read in one form; the templates of the others are listed.
    let forms = ["xy_", "rgbw_", "rgbww_"]
    for template in templates where !forms.contains(where: { template.hasPrefix($0) }) {
      let stem = template.dropLast("_template".count)
      let direction = ["command", "state", "value"].first { stem.hasSuffix("_\($0)") }
      guard let direction else { continue }
      let end = direction == "command" ? "command_topic" : "state_topic"
      let topic = stem.dropLast(direction.count) + end
      #expect(topics.contains(String(topic)) || !Self.names.contains(String(topic)), "\(template)")
    }
  }

  /// The long names in Home Assistant's table of abbreviations.
  private static func longNames() throws -> [String] {
    try Fixture.text("abbreviations.txt").split(separator: "\n").compactMap { line in
      line.split(separator: " ").dropFirst().first.map { String($0) }
    }
  }

  @Test(arguments: [
    "light", "cover", "valve", "fan", "climate", "water_heater", "humidifier", "vacuum", "switch",
    "number", "select", "text", "lock", "siren", "button", "scene", "sensor", "binary_sensor",
    "update",
  ])
  func `every key that the import composes is one of Home Assistant's`(platform: String) throws {
    let names = try Self.longNames()
    for schema in platform == "light" ? ["default", "json", "template"] : ["default"] {
      var members = names.filter { $0.hasSuffix("_topic") || $0.hasSuffix("_template") }.map {
        JSONValue.Member($0, .string($0.hasSuffix("_topic") ? "t/\($0)" : "{{ value }}"))
      }
      for name in ["effect_list", "preset_modes", "swing_modes", "fan_modes", "options", "modes"] {
        members.append(.init(name, ["a", "b"]))
      }
      members += [.init("schema", .string(schema)), .init("name", "x")]
      let announcement = Announcement(
        topic: "homeassistant/\(platform)/x/config",
        text: JSONWriter.text(.object(members))
      )
      let entity = try #require(Entity.all(in: announcement, prefix: "homeassistant").first)
      var reader = EntityReader(entity)
      EntityPlatform.read(&reader)
      #expect(!reader.used.isEmpty)
      // The state of a white tone has no topic, and that of a power has none any more.
      let old: Set = ["white_state_topic", "power_state_topic"]
      #expect(reader.used.subtracting(names).subtracting(old) == [])
    }
  }

  @Test func `the versions of a firmware are read`() throws {
    let announced = [
      ("a", #""val_tpl":"{{ value_json.now }}","l_ver_t":"u","l_ver_tpl":"{{ value_json.next }}""#),
      ("b", #""cmd_t":"u/set""#),
    ].map { id, fields in
      Announcement(
        topic: "homeassistant/update/\(id)/config",
        text: #"{"name":"Firmware","stat_t":"u","dev":{"ids":"\#(id)","name":"\#(id)"},\#(fields)}"#
      )
    }
    let template = try Self.property("a/firmware_installed_version", in: announced)
    #expect(Self.shown(#"{"now":"1.2","next":"1.3"}"#, by: template) == "1.2")
    let plain = try Self.property("b/firmware_latest_version", in: announced)
    let report = #"{"installed_version":"1.2","latest_version":"1.3"}"#
    #expect(Self.shown(report, by: plain) == "1.3")
    #expect(plain.isReadOnly)
  }

  @Test func `every abbreviation of Home Assistant is known`() throws {
    for line in try Fixture.text("abbreviations.txt").split(separator: "\n") {
      let names = line.split(separator: " ").map { String($0) }
      let short = JSONValue.object([JSONValue.Member(names[0], .object([]))])
      #expect(Abbreviations.expanded(short).members?.first?.name == names[1])
    }
  }
}

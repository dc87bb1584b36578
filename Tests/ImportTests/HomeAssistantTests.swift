// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Testing
import Values

/// Import of Home Assistant's discovery messages for entities and for devices.
struct HomeAssistantTests {
  private func file(_ topic: String, _ payload: String) throws -> String {
    try Fixture.file([Announcement(topic: "homeassistant/\(topic)/config", text: payload)])
  }

  private func diagnostics(_ topic: String, _ payload: String) throws -> [String] {
    try Fixture.diagnostics([Announcement(topic: "homeassistant/\(topic)/config", text: payload)])
  }

  @Test func `an installation's announcements are imported and the rest is reported`() throws {
    let plan = try Fixture.plan(Fixture.messages("homeassistant.txt"))
    let devices = try Loaded.devices(["a.yaml": try #require(plan.files.first).text])
    #expect(
      devices.map(\.id) == [
        "dimmer-flur", "heizung-bad", "keller", "kessel", "markise", "sonoff-4ch", "stehlampe",
        "wohnzimmer-decke", "arbeitszimmer", "bad",
      ]
    )
    #expect(
      plan.diagnostics.filter { $0.kind != .diagnostic }.map { "\($0.subject): \($0.reason)" } == [
        "1 entity: announced by Settle itself",
        "Keller: Kellertür: it asks for retained commands; Settle never retains one, so that none is "
          + "replayed",
        "Keller: Kennwort: a password, which its target would show to everybody",
        "Dimmer Flur: light: power: its command_on_template cannot be translated: "
          + "{{ brightness / 255 * 99 }}",
      ]
    )
  }

  @Test func `what Settle announces of a device is not that device`() throws {
    let device = Announcement(
      topic: "homeassistant/switch/n1/sw/config",
      text: #"{"name":"sw","unique_id":"n1_sw","cmd_t":"esp/n1/set","#
        + #""dev":{"ids":["n1"],"name":"Node"}}"#
    )
    let own = Announcement(
      topic: "homeassistant/device/node/config",
      text: #"{"dev":{"ids":["settle_node","n1"],"name":"Node"},"o":{"name":"Settle"},"#
        + #""cmps":{"power":{"p":"switch","unique_id":"x","cmd_t":"settle/node/power/set"}}}"#
    )
    for announcements in [[device], [device, own], [own, device]] {
      let plan = try Fixture.plan(announcements)
      let file = try #require(plan.files.first)
      let record = String(decoding: file.record, as: UTF8.self)
      #expect(file.text.contains("node:"))
      #expect(record.contains(#""n1""#) && !record.contains("settle_node"))
    }
  }

  @Test func `abbreviations and the base topic are expanded`() throws {
    let text = try file(
      "light/x",
      #"{"~":"home/x","name":"Lamp","cmd_t":"~/set","stat_t":"~/state","avty_t":"~/lwt","pl_avail":"Online","pl_not_avail":"Offline","bri_cmd_t":"~/dim/set","bri_scl":100,"val_tpl":"{{ value_json.POWER }}"}"#
    )
    #expect(
      text == """
        lamp:
          name: Lamp
          availability: {topic: home/x/lwt, online: Online, offline: Offline}
          properties:
            power:
              type: boolean
              on: "ON"
              off: "OFF"
              command: {topic: home/x/set}
              state: {topic: home/x/state, value: /POWER}
            brightness:
              type: integer
              range: [0, 100]
              step: 1
              unit: "%"
              command: {topic: home/x/dim/set}

        """
    )
  }

  @Test(arguments: [
    (#""name":"Lamp""#, ""),
    // Of several lamps of a device, the name precedes the properties.
    (#""name":"Left","dev":{"ids":"d","name":"Desk"}"#, "left_"),
  ])
  func `commands of a lamp with the JSON schema carry its power`(name: String, prefix: String)
    throws
  {
    let lamp =
      "{\(name)," + #""schema":"json","cmd_t":"l/set","brightness":true,"effect":true,"#
      + #""effect_list":["rainbow"],"supported_color_modes":["rgb"]}"#
    let other = #"{"name":"Right","dev":{"ids":"d","name":"Desk"},"schema":"json","cmd_t":"r"}"#
    let plan = try Fixture.plan(
      [("a", lamp), ("b", other)].map {
        Announcement(topic: "homeassistant/light/\($0)/config", text: $1)
      }
    )
    let devices = try Loaded.devices(["a.yaml": try #require(plan.files.first).text])
    let properties = devices.flatMap(\.properties)
    for (id, text, sent) in [
      ("brightness", "40", #"{"state":"ON","brightness":40}"#),
      ("brightness", "0", #"{"state":"OFF","brightness":0}"#),
      ("color", "#ff8800", #"{"state":"ON","color":{"r":255,"g":136,"b":0}}"#),
      ("effect", "rainbow", #"{"state":"ON","effect":"rainbow"}"#),
    ] {
      let property = try #require(properties.first { $0.id == prefix + id })
      var bytes: [UInt8] = []
      let value = try property.value(from: .string(text))
      property.command.payload.render(property.wireValue(of: value), into: &bytes)
      #expect(String(decoding: bytes, as: UTF8.self) == sent)
      #expect(
        property.implies == [Implication(property: "\(prefix)power", value: .boolean(true))]
      )
    }
  }

  @Test(arguments: [
    ("brightness", true), ("first", false), ("last", false), (nil, false),
  ])
  func `brightness turns a lamp on where the announcement says so`(
    type: String?,
    implies: Bool
  ) throws {
    let stated = type.map { #","on_cmd_type":"\#($0)""# } ?? ""
    let text = try file(
      "light/x",
      #"{"name":"Lamp","cmd_t":"l/set","bri_cmd_t":"l/level"\#(stated)}"#
    )
    #expect(text.contains("implies: {power: true}") == implies)
  }

  @Test func `components inherit from the device's message`() throws {
    let text = try file(
      "device/boiler",
      #"{"dev":{"ids":"b1","name":"Boiler"},"o":{"name":"x"},"~":"b","avty_t":"~/lwt","stat_t":"~/state","cmps":{"t":{"p":"number","unique_id":"t","name":"Setpoint","cmd_t":"~/t","val_tpl":"{{ value_json.t }}","max":60},"p":{"p":"switch","unique_id":"p","name":null,"cmd_t":"~/p"}}}"#
    )
    #expect(
      text == """
        boiler:
          name: Boiler
          device: {identifiers: [b1]}
          availability: {topic: b/lwt, online: online, offline: offline}
          properties:
            setpoint:
              name: Setpoint
              type: integer
              range: [1, 60]
              step: 1
              command: {topic: b/t}
              state: {topic: b/state, value: /t}
            power: {type: boolean, on: "ON", off: "OFF", command: {topic: b/p}, state: {topic: b/state}}

        """
    )
  }

  @Test func `a cover with reversed bounds is scaled`() throws {
    let text = try file(
      "cover/c",
      #"{"name":"Awning","cmd_t":"a/set","set_pos_t":"a/pos/set","pos_t":"a/pos","pos_open":0,"pos_clsd":255}"#
    )
    #expect(text.contains("scale: {from: [0, 100], to: [255, 0]}"))
    #expect(text.contains("state: {topic: a/pos}"))
    #expect(text.contains("values: [OPEN, CLOSE, STOP]"))
    #expect(text.contains("urgent: [OPEN, CLOSE, STOP]"))
  }

  @Test(arguments: [
    (
      "alarm_control_panel/a", #"{"name":"A","cmd_t":"a"}"#,
      "left_out: A: A: an alarm system must not be debounced"
    ),
    (
      "teapot/a", #"{"name":"A","cmd_t":"a"}"#,
      "left_out: A: A: entities of the kind 'teapot' are not supported"
    ),
    (
      "switch/a", "{",
      "refused: homeassistant/switch/a/config: not JSON: the text ends too early: string or '}' expected near end of file (line 1, column 1)"
    ),
    ("switch/a", "[]", "refused: homeassistant/switch/a/config: not a JSON object"),
    ("device/a", "{}", "refused: homeassistant/device/a/config: a device without components"),
    (
      "switch/a", #"{"name":"A","cmd_t":"a/#"}"#,
      "refused: A: A: command_topic: the topic contains the wildcard #"
    ),
    (
      "select/a", #"{"name":"A","stat_t":"a","ops":["x"]}"#,
      "left_out: A: A: it has no topic on which something can be set or read"
    ),
    (
      "number/a", #"{"name":"A","cmd_t":"a","min":9,"max":1}"#,
      "refused: A: A: its range is upside down (9 to 1, step 1)"
    ),
    (
      "number/a", #"{"name":"A","cmd_t":"a","cmd_tpl":"{% if value > 3 %}1{% endif %}"}"#,
      "left_out: A: A: its command_template cannot be translated: {% if value > 3 %}1{% endif %}"
    ),
  ])
  func `everything that is skipped is reported with the reason`(
    topic: String,
    payload: String,
    diagnostic: String
  ) throws {
    let found = try diagnostics(topic, payload)
    #expect(found.count == 1)
    let label = topic.prefix { $0 != "/" }
    #expect(found.first == diagnostic.replacing("A: A: ", with: "A: \(label): "))
  }

  @Test func `a state on the topic of the commands is left out, and named`() throws {
    let topic = "switch/a"
    let payload = #"{"name":"A","cmd_t":"a/$x","stat_t":"a/$x","stat_on":"1","stat_off":"0"}"#
    #expect(
      try diagnostics(topic, payload) == [
        "partly: A: power: without a state; 'a/$x' is also the topic of its commands, which the "
          + "gateway would take for reports"
      ]
    )
    let text = try file(topic, payload)
    #expect(text.contains("command: {topic: a/$$x}"))
    #expect(!text.contains("state:"))
    _ = try Loaded.devices(["a.yaml": text])
  }

  @Test func `the presence of zwave-js-ui is understood, and another program's is named`() throws {
    let file = try #require(
      try Fixture.plan(Fixture.messages("homeassistant.txt")).files.first {
        $0.source == .homeassistant
      }
    )
    let awning = try #require(
      try Loaded.devices(["a.yaml": file.text]).first { $0.id == "markise" }
    )
    #expect(
      awning.availability.map(\.topic) == [
        "zwave/Terrasse/Markise/status", "zwave/_CLIENTS/ZWAVE_GATEWAY-zwave/status",
      ]
    )
    for source in awning.availability {
      #expect(source.isOnline(in: .object(["value": true])) == true)
      #expect(source.isOnline(in: .object(["value": false])) == false)
    }
    let text =
      #"{"name":"A","cmd_t":"a","avty":[{"t":"s","val_tpl":"{{ 'up' if value else 'x' }}"}]}"#
    #expect(
      try diagnostics("switch/a", text) == [
        "partly: A: switch: the template of its availability cannot be translated: "
          + "{{ 'up' if value else 'x' }}"
      ]
    )
  }

  @Test func `presence without two different words is named`() throws {
    let text = #"{"name":"A","cmd_t":"a","avty_t":"s","pl_avail":"1","pl_not_avail":1}"#
    #expect(
      try diagnostics("switch/a", text) == [
        "partly: A: switch: without its availability, whose payloads for online and offline are the same"
      ]
    )
  }

  @Test func `a lock that reports other words than it accepts has a state`() throws {
    let text = try file("lock/a", #"{"name":"Door","cmd_t":"d/set","stat_t":"d"}"#)
    let lock = try #require(try Loaded.devices(["a.yaml": text]).first?.properties.first)
    #expect(lock.wireValue(of: .boolean(true)) == "LOCK")
    #expect(lock.state?.topic == "d" && lock.value(fromWire: "UNLOCKED") == .boolean(false))
  }

  @Test func `an empty payload removes a device`() throws {
    let plan = try Fixture.plan([Announcement(topic: "homeassistant/light/x/config", text: "")])
    #expect(plan.files.isEmpty)
    #expect(plan.diagnostics.isEmpty)
  }

  @Test func `a device that Zigbee2MQTT announces twice is imported once`() throws {
    let plan = try Fixture.plan(Fixture.all())
    let owned = ImportDiagnostic(
      .leftOut,
      "1 entity",
      "from Zigbee2MQTT, imported from zigbee2mqtt/bridge/devices"
    )
    #expect(plan.diagnostics.contains(owned))
    #expect(plan.files.map(\.devices) == [73, 9, 3])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
@testable import Import
import JSON
import Routing
import Testing
import Values

/// Import of Zigbee2MQTT's exposes.
struct Zigbee2MQTTTests {
  /// The device's lines below `properties:`.
  private func properties(_ exposes: String) throws -> String {
    let text = try #require(try Fixture.plan(Fixture.device(exposes: exposes)).files.first).text
    return text.split(separator: "  properties:\n").last.map { String($0) } ?? ""
  }

  private static let light = """
    [{"type":"light","features":[
    {"type":"binary","name":"state","property":"state","access":7,"value_on":"ON","value_off":"OFF","value_toggle":"TOGGLE"},
    {"type":"numeric","name":"brightness","property":"brightness","access":7,"value_min":0,"value_max":254},
    {"type":"numeric","name":"color_temp","property":"color_temp","access":7,"value_min":150,"value_max":500,"unit":"mired"},
    {"type":"composite","name":"color_xy","property":"color","access":7,"features":[]}]}]
    """

  @Test func `a lamp that matches its profile needs four lines`() throws {
    #expect(
      try Fixture.file(Fixture.device(exposes: Self.light)) == """
        # V M 0x01
        lamp:
          name: Lamp
          device: {manufacturer: V, model: M, identifiers: [zigbee2mqtt_0x01]}
          profile: zigbee2mqtt/light
          topic: zigbee2mqtt/Lamp

        """
    )
  }

  @Test(arguments: [
    (
      #"{"type":"numeric","name":"delay","property":"delay","access":3,"value_min":0,"value_max":10,"value_step":0.5,"unit":"s"}"#,
      """
          delay:
            type: number
            range: [0, 10]
            step: 0.5
            unit: s
            command: {topic: $topic/set, payload: {delay: $value}}
            state: {topic: $topic, value: /delay}
      """
    ),
    (
      #"{"type":"numeric","name":"max","property":"max","access":7,"value_min":0,"value_max":9}"#,
      """
          max:
            type: number
            range: [0, 9]
            command: {topic: $topic/set, payload: {max: $value}}
            state: {topic: $topic, value: /max, get: {topic: $topic/get, payload: {max: ""}}}
      """
    ),
    (
      #"{"type":"binary","name":"led","property":"led","access":2,"value_on":true,"value_off":false}"#,
      """
          led: {type: boolean, command: {topic: $topic/set, payload: {led: $value}}}
      """
    ),
    (
      #"{"type":"lock","features":[{"type":"binary","name":"state","property":"child_lock","access":3,"value_on":"LOCK","value_off":"UNLOCK"}]}"#,
      """
          child_lock:
            type: boolean
            on: LOCK
            off: UNLOCK
            command: {topic: $topic/set, payload: {child_lock: $value}}
            state: {topic: $topic, value: /child_lock}
      """
    ),
    (
      #"{"type":"enum","name":"effect","property":"effect","access":2,"values":["blink","okay"]}"#,
      """
          effect:
            type: action
            values: [blink, okay]
            command: {topic: $topic/set, payload: {effect: $value}}
      """
    ),
    (
      #"{"type":"enum","name":"trv_mode","property":"trv_mode","access":3,"values":[1,2]}"#,
      """
          trv_mode:
            type: choice
            values: {"1": 1, "2": 2}
            command: {topic: $topic/set, payload: {trv_mode: $value}}
            state: {topic: $topic, value: /trv_mode}
      """
    ),
    (
      #"{"type":"text","name":"label/x~y","property":"label/x~y","access":3}"#,
      """
          label_x_y:
            type: text
            command: {topic: $topic/set, payload: {"label/x~y": $value}}
            state: {topic: $topic, value: "/label~1x~0y"}
      """
    ),
    (
      #"{"type":"switch","features":[{"type":"binary","name":"state","endpoint":"l2","property":"state_l2","access":3,"value_on":"ON","value_off":"OFF"}],"endpoint":"l2"}"#,
      """
          power_l2:
            aliases: [state_l2]
            type: boolean
            on: "ON"
            off: "OFF"
            command: {topic: $topic/set, payload: {state_l2: $value}}
            state: {topic: $topic, value: /state_l2}
      """
    ),
    (
      #"{"type":"light","features":[{"type":"binary","name":"state","endpoint":"l1","property":"state_l1","access":2,"value_on":"ON","value_off":"OFF"},{"type":"numeric","name":"brightness","endpoint":"l1","property":"brightness_l1","access":2,"value_min":0,"value_max":254},{"type":"numeric","name":"brightness","endpoint":"l2","property":"brightness_l2","access":2,"value_min":0,"value_max":254}],"endpoint":"l1"}"#,
      """
          power_l1:
            aliases: [state_l1]
            type: boolean
            on: "ON"
            off: "OFF"
            command: {topic: $topic/set, payload: {state_l1: $value}}
          brightness_l1:
            type: integer
            range: [0, 254]
            step: 1
            display: {unit: "%", scale: {from: [0, 254], to: [0, 100]}}
            implies: {power_l1: true}
            command: {topic: $topic/set, payload: {brightness_l1: $value}}
          brightness_l2:
            type: integer
            range: [0, 254]
            step: 1
            display: {unit: "%", scale: {from: [0, 254], to: [0, 100]}}
            command: {topic: $topic/set, payload: {brightness_l2: $value}}
      """
    ),
    (
      #"{"type":"numeric","name":"t","property":"t","access":2,"value_min":0,"value_max":140737488355329,"value_step":1}"#,
      """
          t: {type: number, command: {topic: $topic/set, payload: {t: $value}}}
      """
    ),
    (
      #"{"type":"composite","name":"warning","property":"warning","access":2,"features":[{"type":"enum","name":"mode","property":"mode","access":2,"values":["stop","fire"]}]}"#,
      """
          warning:
            class: siren
            type: action
            values: [stop, fire]
            command: {topic: $topic/set, payload: {warning: {mode: $value}}}
      """
    ),
    (
      #"{"type":"enum","name":"mode","property":"mode","access":3,"category":"config","label":"PIR mode","values":["a"]}"#,
      """
          mode:
            name: PIR mode
            category: config
            type: choice
            values: [a]
            command: {topic: $topic/set, payload: {mode: $value}}
            state: {topic: $topic, value: /mode}
      """
    ),
    (
      #"{"type":"numeric","name":"set","property":"set","access":2,"value_min":1,"value_max":2,"value_step":5}"#,
      """
          set_value:
            type: integer
            range: [1, 2]
            step: 1
            command: {topic: $topic/set, payload: {set: $value}}
      """
    ),
  ])
  func `each kind of expose becomes its property type`(expose: String, expected: String) throws {
    let found = try properties("[\(expose)]")
    #expect(found == expected + "\n")
  }

  @Test(arguments: [
    (
      #"{"type":"numeric","name":"t","property":"t","access":7,"value_min":10,"value_max":5}"#,
      "refused: Lamp: t: its range is upside down (10 to 5)"
    ),
    (
      #"{"type":"numeric","name":"t","property":"t","access":7,"value_min":0,"value_max":1e300}"#,
      "partly: Lamp: t: its range or step is out of all bounds (0 to 1e+300), so none is kept"
    ),
    (
      #"{"type":"numeric","name":"t","property":"t","access":2,"value_min":3,"value_max":3}"#,
      "left_out: Lamp: t: its range is a single value (3 to 3)"
    ),
    (
      #"{"type":"enum","name":"m","property":"m","access":2,"values":[""]}"#,
      "left_out: Lamp: m: its list of values is empty"
    ),
    (
      #"{"type":"numeric","name":"t","property":"t","access":7,"value_min":0,"value_max":3,"value_step":7}"#,
      "partly: Lamp: t: its step is more than its whole range (0 to 3, step 7), so none is kept"
    ),
    (
      #"{"type":"enum","name":"m","property":"m","access":7,"values":[{}]}"#,
      "refused: Lamp: m: its list of values holds more than words"
    ),
    (
      #"{"type":"list","name":"l","property":"l","access":3,"item_type":{}}"#,
      "left_out: Lamp: l: a list"
    ),
    (
      #"{"type":"composite","name":"warning","property":"warning","access":2,"features":[]}"#,
      "left_out: Lamp: warning: a group of values that are set together"
    ),
    (
      #"{"type":"hologram","name":"h","property":"h","access":2}"#,
      "refused: Lamp: h: its type 'hologram' is not supported"
    ),
    (
      #"{"type":"numeric","name":"linkquality","property":"linkquality","access":1}"#,
      "diagnostic: Lamp: linkquality"
    ),
    (#"{"type":"binary","access":2}"#, "refused: Lamp: binary: it has no usable name"),
  ])
  func `everything that is skipped is reported with the reason`(expose: String, diagnostic: String)
    throws
  {
    let diagnostics = try Fixture.diagnostics(Fixture.device(exposes: "[\(expose)]"))
    #expect(diagnostics == [diagnostic])
  }

  @Test(arguments: [
    ("", "17.4", "17.4"),
    (#","value_step":1"#, "17.4", "found 17.4, expected a whole number"),
    (#","value_step":0.1"#, "17.4", "17.4"),
  ])
  func `the step decides whether a number is whole`(step: String, given: String, result: String)
    throws
  {
    let announced = Fixture.device(
      exposes: """
        [{"type":"numeric","name":"calibration_time","property":"calibration_time","access":7,
        "value_min":0,"value_max":200\(step)}]
        """
    )
    let text = try #require(Fixture.plan(announced).files.first).text
    let property = try #require(try Loaded.devices(["a.yaml": text]).first?.properties.first)
    do throws(ValidationError) {
      #expect(try property.value(from: .string(given)).bareText == result)
    } catch {
      #expect(error.description == result)
    }
  }

  @Test func `a number with one value, and a choice without words, can only be read`() throws {
    let announced = Fixture.device(
      exposes: """
        [{"type":"numeric","name":"t","property":"t","access":7,"value_min":3,"value_max":3},
        {"type":"enum","name":"m","property":"m","access":7,"values":[""]}]
        """
    )
    #expect(
      try Fixture.file(announced).hasSuffix(
        """
          properties:
            t: {type: number, state: {topic: $topic, value: /t}}
            m: {type: text, state: {topic: $topic, value: /m}}

        """
      )
    )
    #expect(try Fixture.diagnostics(announced) == [])
  }

  @Test func `a home of 60 devices is imported and the rest is reported`() throws {
    let plan = try Fixture.plan(Fixture.zigbee2mqtt())
    let file = try #require(plan.files.first)
    #expect(file.devices == 73 && file.groups == 2)
    #expect(file.changes.count == 75)
    #expect(file.changes.allSatisfy { $0.kind == .added })
    let left = plan.diagnostics.filter { $0.kind == .leftOut && !$0.subject.contains(": ") }
    #expect(
      left.map { "\($0.subject): \($0.reason)" } == [
        "Alte Lampe (Dachboden): disabled in Zigbee2MQTT",
        "0xa4c138b5f2e60d19: not supported by Zigbee2MQTT, which does not know its features",
        "0x00158d0009f1c2aa: its interview has not been completed",
        "Sensoren: a group whose members have nothing to set in common",
        "default_bind_group: a group without known members",
      ]
    )
    #expect(plan.diagnostics.allSatisfy { $0.kind == .leftOut || $0.kind == .diagnostic })
    #expect(!file.text.contains("Coordinator"))
  }

  @Test func `a base topic of two levels has its own bridge state`() throws {
    let lamp = try #require(Fixture.device(exposes: Self.light).first)
    let text = try Fixture.file([
      Announcement(topic: "home/zigbee/bridge/devices", payload: lamp.payload)
    ])
    #expect(text.contains("topic: home/zigbee/Lamp"))
    #expect(text.contains("{topic: home/zigbee/bridge/state, value: /state"))
  }

  @Test(arguments: [("offline", false), (#"{"state":"offline"}"#, false), ("online", true)])
  func `Zigbee2MQTT may report its state as a plain word`(report: String, isOnline: Bool) throws {
    let exposes = #"[{"type":"binary","name":"led","property":"led","access":7}]"#
    let text = try #require(try Fixture.plan(Fixture.device(exposes: exposes)).files.first).text
    let device = try #require(try Loaded.devices(["a.yaml": text]).first)
    let document =
      (try? Announcement(topic: "", text: report).json()) ?? .string(report)
    #expect(device.availability.count == 2)
    for source in device.availability { #expect(source.isOnline(in: document) == isOnline) }
  }

  @Test func `behind routes the original devices are imported with the same identifiers`() throws {
    let lamp = try #require(Fixture.device(exposes: Self.light).first)
    let moved = Announcement(topic: "direct/bridge/devices", payload: lamp.payload)
    let before = try #require(Fixture.plan([lamp]).files.first)
    let plan = try Fixture.plan([lamp, moved], present: [.zigbee2mqtt: before.asPresent]) {
      $0.recordRoutes([
        .init(
          from: .init(topic: "zigbee2mqtt/+/set"),
          to: .init(topic: "direct/+/set"),
          policy: nil
        )
      ])
    }
    #expect(plan.files.first?.changes == [ImportChange(.changed, "lamp/topic")])
    #expect(plan.files.first?.text.contains("  topic: direct/Lamp\n") == true)
  }

  @Test func `a home that is announced twice is imported once`() throws {
    let lamp = try #require(Fixture.device(exposes: Self.light).first)
    let other = Announcement(topic: "other/bridge/devices", payload: lamp.payload)
    let plan = try Fixture.plan([lamp, other])
    #expect(plan.files.first?.devices == 1)
    #expect(plan.diagnostics.map(\.kind) == [.leftOut])
    #expect(try Fixture.plan([lamp, other]) { $0.base = "zigbee2mqtt" }.diagnostics == [])
  }

  @Test func `devices use the lane zigbee if the settings have one`() throws {
    let plan = try Fixture.plan(Fixture.device(exposes: Self.light)) { $0.lanes = ["zigbee"] }
    #expect(plan.files.first?.text.contains("  lane: zigbee\n") == true)
  }

  @Test func `devices in another file are skipped`() throws {
    let announced = Fixture.device(exposes: Self.light)
    let plan = try Fixture.plan(announced)
    let lamp = try Loaded.devices(["a.yaml": try #require(plan.files.first).text])
    let second = try Fixture.plan(announced, others: lamp)
    #expect(second.files.isEmpty)
    #expect(
      second.diagnostics == [
        ImportDiagnostic(.leftOut, "Lamp", "already in another device file, as 'lamp'")
      ]
    )
  }
}

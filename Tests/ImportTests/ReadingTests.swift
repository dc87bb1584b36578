// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Testing
import Values

/// Import of what devices only report.
struct ReadingTests {
  private func lines(_ announcements: [Announcement], diagnostic: Bool = false) throws -> String {
    let plan = try Fixture.plan(announcements) { $0.includesDiagnostic = diagnostic }
    let file = try #require(plan.files.first)
    _ = try Loaded.devices(["a.yaml": file.text])
    return file.text.split(separator: "  properties:\n").last.map { String($0) } ?? ""
  }

  /// An announcement of an entity; `more` are members beside its name and state.
  private func sensor(_ topic: String, _ name: String, _ more: String = "") -> Announcement {
    let id = topic.split(separator: "/").last ?? ""
    let device = #""dev":{"ids":["p1"],"name":"Plug","sa":"Küche"}"#
    let text = #"{"name":"\#(name)","stat_t":"p/\#(id)",\#(more)\#(device)}"#
    return Announcement(topic: "homeassistant/\(topic)/config", text: text)
  }

  private static let sensor = """
    [{"type":"numeric","name":"temperature","property":"temperature","access":1,"unit":"°C","value_min":-20},
    {"type":"binary","name":"contact","property":"contact","access":1,"value_on":false,"value_off":true},
    {"type":"binary","name":"valve","property":"valve","access":1,"value_on":"OPEN","value_off":"CLOSED"},
    {"type":"enum","name":"charge","property":"charge","access":1,"values":["", "full", "low"]},
    {"type":"numeric","name":"battery","property":"battery","access":1,"unit":"%","category":"diagnostic"},
    {"type":"numeric","name":"linkquality","property":"linkquality","access":1,"unit":"lqi"},
    {"type":"numeric","name":"voltage","property":"voltage","access":1,"unit":"mV","category":"diagnostic"},
    {"type":"enum","name":"action","property":"action","access":1,"values":["single"]},
    {"type":"composite","name":"update","property":"update","access":1,"features":[]}]
    """

  @Test func `what a sensor reports becomes read-only, but not what is diagnostic`() throws {
    let announced = Fixture.device(exposes: Self.sensor)
    #expect(
      try lines(announced) == """
            temperature: {type: number, unit: °C, state: {topic: $topic, value: /temperature}}
            contact: {type: boolean, state: {topic: $topic, value: /contact}}
            valve: {type: boolean, on: OPEN, off: CLOSED, state: {topic: $topic, value: /valve}}
            charge: {type: choice, values: [full, low], state: {topic: $topic, value: /charge}}
            battery: {type: number, unit: "%", state: {topic: $topic, value: /battery}}
            action: {class: remote, type: choice, values: [single], state: {topic: $topic, value: /action}}

        """
    )
    #expect(
      try Fixture.diagnostics(announced) == [
        "diagnostic: Lamp: linkquality, voltage, update"
      ]
    )
    let all = try lines(announced, diagnostic: true)
    #expect(all.contains("linkquality: {type: number, unit: lqi"))
    #expect(all.contains("voltage: "))
  }

  @Test func `the power that a plug measures is not the one that switches it`() throws {
    let exposes = """
      [{"type":"switch","features":[{"type":"binary","name":"state","property":"state","access":7,
      "value_on":"ON","value_off":"OFF"}]},
      {"type":"numeric","name":"power","property":"power","access":5,"unit":"W"}]
      """
    let text = try Fixture.file(Fixture.device(exposes: exposes))
    #expect(
      text == """
        # V M 0x01
        lamp:
          name: Lamp
          device: {manufacturer: V, model: M, identifiers: [zigbee2mqtt_0x01]}
          profile: zigbee2mqtt/switch
          topic: zigbee2mqtt/Lamp
          properties:
            active_power: {type: number, unit: W, state: {topic: $topic, value: /power}}

        """
    )
  }

  @Test func `Homie's properties that cannot be set are read-only, and events are left out`() throws
  {
    let text = """
      {"homie":"5.0","name":"D","nodes":{"n":{"properties":{
      "t":{"datatype":"float","format":"0:100","unit":"°C"},"m":{"datatype":"enum","format":"a,b"},
      "e":{"datatype":"boolean","retained":false},"j":{"datatype":"json"}}}}}
      """
    let announced = [Announcement(topic: "homie/5/d/$description", text: text)]
    #expect(
      try lines(announced) == """
            t: {type: number, unit: °C, state: {topic: $topic/n/t}}
            m: {type: choice, values: [a, b], state: {topic: $topic/n/m}}

        """
    )
    #expect(try Fixture.diagnostics(announced) == ["diagnostic: D: n/e, n/j"])
  }

  @Test func `Home Assistant's sensors are read-only properties of their device`() throws {
    let announced = [
      sensor("switch/p", "Plug", #""cmd_t":"p/set","#),
      sensor("sensor/w", "Power", #""unit_of_meas":"W","val_tpl":"{{ value_json.w / 10 }}","#),
      sensor("sensor/s", "Signal", #""unit_of_meas":"dBm","ent_cat":"diagnostic","#),
      sensor("sensor/v", "Version"),
      sensor("sensor/x", "X", #""val_tpl":"{% if 1 %}{% endif %}","#),
      sensor("sensor/e", "Mode", #""options":["a","b"],"#),
      sensor("binary_sensor/d", "Door", #""pl_on":"open","pl_off":"shut","#),
    ]
    let plan = try Fixture.plan(announced)
    let text = try #require(plan.files.first).text
    #expect(text.contains("  area: Küche\n"))
    let plug = try #require(try Loaded.devices(["a.yaml": text]).first)
    #expect(plug.properties.map(\.id) == ["power", "door", "mode", "version", "active_power"])
    #expect(plug.properties.map(\.isReadOnly) == [false, true, true, true, true])
    let power = try #require(plug.properties.last)
    #expect(power.value(fromWire: 2153) == .number(215.3))
    #expect(power.state?.topic == "p/w" && power.kind.numberRule?.unit == "W")
    #expect(
      plan.diagnostics.map { "\($0.kind.rawValue): \($0.subject): \($0.reason)" } == [
        "diagnostic: Plug: Signal",
        "left_out: Plug: X: its value_template cannot be translated: {% if 1 %}{% endif %}",
      ]
    )
  }

  @Test func `a contact of another program is open when its announcement says on`() throws {
    let raw = [sensor("binary_sensor/c", "Contact", #""pl_on":true,"pl_off":false,"#)]
    #expect(
      try lines(raw).contains(
        "type: boolean, on: true, off: false, state: {topic: p/c}}"
      )
    )
    let worded = [sensor("binary_sensor/c", "Contact", #""pl_on":"open","pl_off":"shut","#)]
    #expect(try lines(worded).contains("type: boolean, on: open, off: shut, state: "))
  }

  @Test func `the contacts of endpoints are doors`() throws {
    let exposes = ["1", "2"].map {
      #"{"type":"binary","name":"contact","property":"contact_\#($0)","endpoint":"\#($0)","#
        + #""access":1,"value_on":false,"value_off":true}"#
    }
    let text = try lines(Fixture.device(exposes: "[\(exposes.joined(separator: ","))]"))
    #expect(text.contains("contact_1: {class: door, type: boolean, state: "))
    #expect(text.contains("contact_2: {class: door, type: boolean, state: "))
  }

  @Test func `a room comes from the announcements that Zigbee2MQTT makes to Home Assistant`() throws
  {
    let announced =
      Fixture.device(exposes: Self.sensor) + [
        Announcement(
          topic: "homeassistant/sensor/0x01/temperature/config",
          text: #"{"stat_t":"zigbee2mqtt/Lamp","dev":{"ids":["zigbee2mqtt_0x01"],"sa":"Bath","#
            + #""cu":"http://z/#/device/0x01/info","mdl":"Lamp E27"}}"#
        )
      ]
    let plan = try Fixture.plan(announced)
    #expect(plan.files.count == 1)
    let file = try #require(plan.files.first)
    #expect(file.text.contains("  area: Bath\n"))
    let details = try #require(try Loaded.devices(["a.yaml": file.text]).first?.details)
    #expect(details.manufacturer == "V" && details.model == "Lamp E27")
    #expect(details.url == "http://z/#/device/0x01/info")
    #expect(details.identifiers == ["zigbee2mqtt_0x01"])

    // Without the announcements to Home Assistant, what they said stays.
    let again = try Fixture.plan(announced, present: [.zigbee2mqtt: file.asPresent]) {
      $0.sources = [.zigbee2mqtt]
    }
    #expect(again.files.first?.text.contains("url: \"http://z/#/device/0x01/info\"") == true)
    #expect(again.files.first?.text.contains("  area: Bath\n") == true)
  }

  @Test func `a group named like a room gives its members the room, and others get theirs`() throws
  {
    func device(_ address: String, _ name: String) -> String {
      #"{"ieee_address":"\#(address)","friendly_name":"\#(name)","definition":{"exposes":["#
        + #"{"type":"switch","features":[{"type":"binary","name":"state","property":"state","#
        + #""value_on":"ON","value_off":"OFF","access":7}]}]}}"#
    }
    func group(_ id: Int, _ name: String, _ members: [String]) -> String {
      let listed = members.map { #"{"ieee_address":"\#($0)"}"# }.joined(separator: ",")
      return #"{"id":\#(id),"friendly_name":"\#(name)","members":[\#(listed)]}"#
    }
    let announced = [
      Announcement(
        topic: "zigbee2mqtt/bridge/devices",
        text: "[" + ["a", "b", "c"].map { device($0, "Plug \($0)") }.joined(separator: ",") + "]"
      ),
      Announcement(
        topic: "zigbee2mqtt/bridge/groups",
        text: "["
          + [group(1, "bath", ["a", "b"]), group(2, "Fans", ["a"]), group(3, "All", ["a", "c"])]
          .joined(separator: ",") + "]"
      ),
      Announcement(
        topic: "homeassistant/switch/a/switch/config",
        text: #"{"cmd_t":"zigbee2mqtt/Plug a/set","dev":{"ids":["zigbee2mqtt_a"],"sa":"Bath"}}"#
      ),
    ]
    let file = try #require(try Fixture.plan(announced).files.first)
    let devices = try Loaded.devices(["a.yaml": file.text])
    #expect(
      devices.map { "\($0.id): \($0.area ?? "-")" }.sorted() == [
        "all: -", "bath: Bath", "fans: Bath", "plug-a: Bath", "plug-b: Bath", "plug-c: -",
      ]
    )
  }

  @Test func `a sensor in another file is skipped`() throws {
    let announced = Fixture.device(exposes: Self.sensor)
    let text = "mine: {properties: {t: {type: number, state: {topic: zigbee2mqtt/Lamp}}}}"
    let plan = try Fixture.plan(announced, others: try Loaded.devices(["a.yaml": text]))
    #expect(plan.files.isEmpty)
    #expect(
      plan.diagnostics.contains(
        ImportDiagnostic(.leftOut, "Lamp", "already in another device file, as 'mine'")
      )
    )
  }
}

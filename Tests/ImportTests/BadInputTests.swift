// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOutTesting
import Testing
import Values
@testable import Import

/// Every announcement results in a device file or a reason.
struct BadInputTests {
  private static let topic = "zigbee2mqtt/bridge/devices"

  @Test(arguments: [
    (
      "{\"a\":",
      "not JSON: the text ends too early: "
    ),
    ("nonsense", "not JSON: "),
    ("{}", "it is not a list of devices"),
    ("null", "it is not a list of devices"),
    ("[1]", "entry 1 is not an object"),
    ("[{}]", "entry 1 has no ieee_address"),
    (#"[{"ieee_address":"0x1","friendly_name":""}]"#, "a device has an empty name"),
  ])
  func `a broken list of devices is reported with the reason`(text: String, reason: String) throws {
    let plan = try Fixture.plan([Announcement(topic: Self.topic, text: text)])
    #expect(plan.files.isEmpty)
    #expect(plan.diagnostics.map(\.kind) == [.refused])
    #expect(plan.diagnostics.first?.subject == Self.topic)
    #expect(plan.diagnostics.first?.reason.hasPrefix(reason) == true)
  }

  @Test func `ten megabytes are rejected`() throws {
    let payload = [UInt8](repeating: UInt8(ascii: "["), count: 10 << 20)
    let plan = try Fixture.plan([Announcement(topic: Self.topic, payload: payload)])
    #expect(
      plan.diagnostics == [
        ImportDiagnostic(.refused, Self.topic, "10485760 bytes; the limit is 8 MiB")
      ]
    )
  }

  @Test func `deep nesting and text that is not UTF-8 are rejected`() throws {
    for payload in [
      [UInt8](repeating: UInt8(ascii: "["), count: 100_000), [0x5B, 0x22, 0xFF, 0x22, 0x5D],
    ] {
      let plan = try Fixture.plan([Announcement(topic: Self.topic, payload: payload)])
      #expect(plan.diagnostics.map(\.kind) == [.refused])
    }
  }

  private static let expose =
    #"[{"type":"binary","name":"led","property":"led","access":3,"value_on":true,"value_off":false}]"#

  @Test(arguments: [
    "../../../etc/cron.d/x", "a\"b: {c}\n  d: e", "- x", "&a *b !c",
    "${HOME} $topic $$",
    "\u{FEFF}bom", "x\u{2028}y", "'quoted'", "true", "null", "1.5", "emoji 💡 lamp", "tab\there",
    "%2e%2e", "a: b", "[flow]", "@at", "`tick`", "|pipe", ">fold", "?", "~", "é\u{301}",
  ])
  func `names with a meaning in YAML, shells or paths stay names`(name: String) throws {
    let plan = try Fixture.plan(Fixture.device(exposes: Self.expose, name: name))
    guard let file = plan.files.first else {
      #expect(
        plan.diagnostics.first?.reason.hasPrefix("the topic contains the character U+") == true
      )
      return
    }
    #expect(file.path == "devices/imported-zigbee2mqtt.yaml")
    let devices = try Loaded.devices(["a.yaml": file.text])
    #expect(devices.first?.properties.first?.command.topic == "zigbee2mqtt/\(name)/set")
    #expect(devices.first?.properties.first?.states.first?.topic == "zigbee2mqtt/\(name)")
  }

  @Test func `a device with two properties of one name is found before the file is written`() {
    let property = JSONValue.object(["type": "boolean"])
    let device = { (names: [String]) in
      FileDevice(
        id: "odd",
        identity: "odd",
        comment: "",
        members: [.init("properties", .object(names.map { .init($0, property) }))]
      )
    }
    #expect(device(["a", "b"]).mistake == nil)
    #expect(device(["a", "a"]).mistake?.hasPrefix("key 'a' appears twice") == true)
  }

  @Test(arguments: [
    ("zigbee2mqtt/bridge/request/permit_join", true), ("zigbee2mqtt/bridge/config/devices", true),
    ("mygateway/permit_join", true), ("tuya/restart", true), ("kitchen/bridge/set", false),
    ("restart/lamp/set", false),
  ])
  func `commands that control a bridge are imported with a warning`(
    topic: String,
    isWarned: Bool
  ) throws {
    let plan = try Fixture.plan([
      Announcement(
        topic: "homeassistant/switch/x/config",
        text: #"{"unique_id":"x","name":"X","command_topic":"\#(topic)"}"#
      )
    ])
    #expect(plan.files.count == 1)
    #expect(plan.diagnostics.map(\.kind) == (isWarned ? [.controlsBridge] : []))
    #expect(plan.diagnostics.allSatisfy { $0.reason.contains("'\(topic)'") })
  }

  @Test(arguments: ["a/+/b", "#", "nul\u{0}", "bell\u{7}", String(repeating: "x", count: 70_000)])
  func `names that cannot be topics are rejected`(name: String) throws {
    let plan = try Fixture.plan(Fixture.device(exposes: Self.expose, name: name))
    #expect(plan.files.isEmpty)
    #expect(plan.diagnostics.map(\.kind) == [.refused])
  }

  @Test func `announced text cannot control the terminal`() throws {
    let evil = "\u{1B}]0;evil\u{7}\u{202E}"
    let text = JSONWriter.text(
      .object([
        "homie": "5.0", "name": .string(evil),
        "nodes": .object([.init(evil, .object(["properties": .object([.init(evil, .null)])]))]),
      ])
    )
    let lamp = Fixture.device(exposes: #"[{"type":"\u001b","name":"a\u001bb","access":3}]"#)
    let plan = try Fixture.plan(
      lamp + [Announcement(topic: "homie/5/d/$description", text: text)]
    )
    #expect(plan.diagnostics.count == 2)
    for diagnostic in plan.diagnostics {
      let scalars = (diagnostic.subject + diagnostic.reason).unicodeScalars
      #expect(scalars.allSatisfy { Excerpt.escape($0) == nil })
    }
  }

  @Test(arguments: 1...60)
  func `a random mutation of a home gives valid files or reasons`(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let programs = try Fixture.upstream.flatMap { try Fixture.messages($0) }
    let announced = try (Fixture.all() + programs).map { announcement in
      var announcement = announcement
      // A part of the home keeps this fast; another test imports all of it.
      if announcement.payload.count > 20_000 {
        let devices = try JSONParser.parse(announcement.payload.span).elements ?? []
        let some = devices.shuffled(using: &generator).prefix(4)
        announcement.payload = JSONWriter.bytes(.array(some.map { Self.damaged($0, &generator) }))
      } else if let json = try? JSONParser.parse(announcement.payload.span) {
        announcement.payload = JSONWriter.bytes(Self.damaged(json, &generator))
      }
      return announcement
    }
    let plan = try Fixture.plan(announced)
    for file in plan.files where file.devices > 0 { _ = try Loaded.devices(["a.yaml": file.text]) }
  }

  /// The value with a few of its parts replaced by unsuitable values.
  private static func damaged(
    _ value: JSONValue,
    _ generator: inout SeededGenerator
  ) -> JSONValue {
    if Int.random(in: 0..<40, using: &generator) == 0 {
      let odd: [JSONValue] = [
        .null, true, 0, -1, 1e300, 0.1, "", "x", "$value", "$topic", "a/+", "{{ value }}", "on",
        "null", .array([]), .object([JSONValue.Member]()), ["a", 1, true, .null],
        .string(String(repeating: "é", count: 300)),
      ]
      return odd.randomElement(using: &generator) ?? .null
    }
    switch value {
    case .array(let elements): return .array(elements.map { damaged($0, &generator) })
    case .object(let members):
      return .object(members.map { .init($0.name, damaged($0.value, &generator)) })
    case .string(let text):
      // A template that ends too early, or starts too late.
      guard text.contains("{"), Int.random(in: 0..<10, using: &generator) == 0 else { return value }
      let count = Int.random(in: 0...text.count, using: &generator)
      return .string(
        String(Bool.random(using: &generator) ? text.prefix(count) : text.suffix(count))
      )
    case .null, .boolean, .integer, .number: return value
    }
  }
}

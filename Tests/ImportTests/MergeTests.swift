// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import LastOutTesting
import Testing
import Values
@testable import Import

/// A second import keeps edits.
struct MergeTests {
  private static let exposes = """
    {"type":"numeric","name":"delay","property":"delay","access":3,"value_min":0,"value_max":10,"value_step":1}
    """
  private static let wider = exposes.replacing(#""value_max":10"#, with: #""value_max":20"#)
  private static let effect =
    #",{"type":"enum","name":"effect","property":"effect","access":2,"values":["blink"]}"#

  private func announced(_ exposes: String = exposes) -> [Announcement] {
    Fixture.device(exposes: "[\(exposes)]")
  }

  private struct Outcome {
    let text: String
    let changes: [String]
    let diagnostics: [String]
  }

  /// Imports, edits the file, and imports new announcements.
  private func run(
    _ first: [Announcement],
    then second: [Announcement],
    edit: (String) -> String = { $0 }
  ) throws -> Outcome {
    let before = try #require(Fixture.plan(first).files.first)
    let present = ImportPlan.ExistingFile(
      file: Array(edit(before.text).utf8),
      record: before.record
    )
    let plan = try Fixture.plan(second, present: [.zigbee2mqtt: present])
    let after = try #require(plan.files.first)
    _ = try Loaded.devices(["a.yaml": after.text])
    return Outcome(
      text: after.text,
      changes: after.changes.map { "\($0.kind.rawValue) \($0.path)" },
      diagnostics: plan.diagnostics.map { "\($0.kind.rawValue): \($0.subject): \($0.reason)" }
    )
  }

  @Test func `a room stays where announcements to Home Assistant are left out`() throws {
    let room = Announcement(
      topic: "homeassistant/sensor/0x01/temperature/config",
      text: #"{"stat_t":"zigbee2mqtt/Lamp","dev":{"ids":["zigbee2mqtt_0x01"],"sa":"Bath"}}"#
    )
    let later = try run(announced() + [room], then: announced())
    #expect(later.changes == [])
    #expect(later.text.contains("  area: Bath\n"))
  }

  private static let plug = """
    {"type":"switch","features":[
    {"type":"binary","name":"state","property":"state","access":7,"value_on":"ON","value_off":"OFF"}]}
    """
  private static let silentPlug = plug.replacing(#""access":7"#, with: #""access":3"#)

  @Test func `a property that becomes equal to its profile leaves the file`() throws {
    let later = try run(announced(Self.silentPlug), then: announced(Self.plug))
    #expect(later.changes == ["removed lamp/power"])
    #expect(later.diagnostics == [])
    #expect(!later.text.contains("properties:"))
    let again = try run(announced(Self.plug), then: announced(Self.plug))
    #expect(later.text == again.text)

    let beside = "," + Self.exposes
    let both = try run(announced(Self.silentPlug + beside), then: announced(Self.plug + beside))
    #expect(both.changes == ["removed lamp/power"])
    #expect(both.text.contains("properties:\n    delay:\n"))

    let edited = try run(announced(Self.silentPlug), then: announced(Self.plug)) {
      $0.replacing("get: none", with: "get: none, value: /other")
    }
    #expect(edited.changes == [])
    #expect(
      edited.diagnostics == [
        "kept: lamp/power: announced as its profile has it, and edited by hand"
      ]
    )
  }

  @Test(arguments: [
    ("{type: number, unit: s, step: 1}", "{type: number}"),
    ("{unit: s, step: 1, type: number}", "{type: number}"),
    ("{unit: s, type: number, step: 1}", "{type: number}"),
  ])
  func `all fields that are gone leave a mapping in braces`(before: String, after: String) throws {
    func members(_ fields: JSONValue) -> [JSONValue.Member] {
      [.init("properties", .object(["a": fields]))]
    }
    var record = ImportRecord(of: nil)
    record.devices["lamp"] = .init(
      identity: "1",
      members: members(.object(["type": "number", "unit": "s", "step": 1]))
    )
    let bytes = Array("lamp:\n  properties:\n    a: \(before)\n".utf8)
    let merge = try FileMerge(
      bytes,
      root: YAMLOutline.read(bytes, file: "a.yaml"),
      record: record,
      devices: [
        FileDevice(
          id: "lamp",
          identity: "1",
          comment: "",
          members: members(.object(["type": "number"]))
        )
      ],
      groups: [],
      announced: ["lamp"]
    )
    #expect(merge.changes.map(\.path) == ["lamp/a/unit", "lamp/a/step"])
    #expect(
      String(decoding: merge.result, as: UTF8.self) == "lamp:\n  properties:\n    a: \(after)\n"
    )
  }

  @Test func `without a new announcement nothing changes, whatever was edited`() throws {
    let edited = try run(announced(), then: announced()) {
      $0.replacing("name: Lamp", with: "name: \"My lamp\"  # mine").replacing(
        "range: [0, 10]",
        with: "range: [2, 8]"
      )
    }
    #expect(edited.changes == [])
    #expect(edited.diagnostics == [])
    #expect(edited.text.contains("name: \"My lamp\"  # mine\n"))
    #expect(edited.text.contains("range: [2, 8]\n"))
  }

  @Test func `unedited values follow the announcement and the rest stays byte for byte`()
    throws
  {
    var edited = ""
    let outcome = try run(announced(), then: announced(Self.wider)) { text in
      edited =
        "# Größe über alles 💡\n"
        + text.replacing("step: 1\n", with: "step: 2      # grob für mich\n")
      return edited
    }
    #expect(outcome.text == edited.replacing("range: [0, 10]", with: "range: [0, 20]"))
    #expect(outcome.changes == ["changed lamp/delay/range"])
    #expect(outcome.diagnostics == [])
  }

  @Test func `an edited value stays and is reported once`() throws {
    let outcome = try run(announced(), then: announced(Self.wider)) {
      $0.replacing("[0, 10]", with: "[1, 5]")
    }
    #expect(outcome.text.contains("range: [1, 5]"))
    #expect(outcome.changes == [])
    #expect(
      outcome.diagnostics == [
        "kept: lamp/delay/range: the file has [1, 5], the announcement [0, 20]"
      ]
    )
  }

  @Test func `a file with CRLF line breaks is merged`() throws {
    let outcome = try run(announced(), then: announced(Self.wider + Self.effect)) {
      $0.replacing("\n", with: "\r\n")
    }
    #expect(outcome.changes == ["changed lamp/delay/range", "added lamp/effect"])
  }

  @Test func `a difference is reported only once`() throws {
    let first = try #require(Fixture.plan(announced()).files.first)
    let edited = Array(first.text.replacing("[0, 10]", with: "[1, 5]").utf8)
    var present = ImportPlan.ExistingFile(file: edited, record: first.record)
    let second = try Fixture.plan(announced(Self.wider), present: [.zigbee2mqtt: present])
    #expect(second.diagnostics.map(\.kind) == [.kept])
    present = try #require(second.files.first).asPresent
    let third = try Fixture.plan(announced(Self.wider), present: [.zigbee2mqtt: present])
    #expect(third.diagnostics == [])
    #expect(third.files.first?.isChanged == false)
  }

  /// Different layouts of the same device.
  @Test(arguments: [
    "{name: Lamp, profile: zigbee2mqtt/device, topic: zigbee2mqtt/Lamp, properties: {delay: DELAY}}",
    "\n    name: Lamp\n    profile: zigbee2mqtt/device\n    topic: zigbee2mqtt/Lamp\n    properties:\n        delay: DELAY",
    "\n  properties: {delay: DELAY}\n  topic: 'zigbee2mqtt/Lamp'\n  profile: \"zigbee2mqtt/device\"\n  name: Lamp # end",
  ])
  func `any layout of the same device is updated`(layout: String) throws {
    let delay =
      "{type: integer, range: [0, 10], step: 1, command: {topic: $topic/set, payload: "
      + "{delay: $value}}, state: {topic: $topic, value: /delay}}"
    let outcome = try run(announced(), then: announced(Self.wider + Self.effect)) { _ in
      "lamp: " + layout.replacing("DELAY", with: delay)
    }
    #expect(outcome.changes == ["changed lamp/delay/range", "added lamp/effect"])
    #expect(outcome.diagnostics == [])
    let lamp = try #require(Loaded.devices(["a.yaml": outcome.text]).first)
    #expect(lamp.properties.map(\.id) == ["delay", "effect"])
    #expect(lamp.properties.first?.kind.numberRule?.range == 0...20)
  }

  @Test func `a new property is added, also to a flow mapping`() throws {
    let block = try run(announced(), then: announced(Self.exposes + Self.effect))
    #expect(block.changes == ["added lamp/effect"])
    let flow = try run(announced(), then: announced(Self.exposes + Self.effect)) { text in
      let head = text.split(separator: "  properties:\n")[0]
      return head
        + "  properties: {delay: {type: integer, range: [0, 10], step: 1, command: {topic: $topic/set, "
        + "payload: {delay: $value}}, state: {topic: $topic, value: /delay}}}  # short"
    }
    #expect(flow.changes == ["added lamp/effect"])
    #expect(flow.text.hasSuffix("payload: {effect: $value}}}}  # short"))
  }

  @Test func `a property that is no longer announced is reported, not deleted`() throws {
    let outcome = try run(announced(Self.exposes + Self.effect), then: announced())
    #expect(outcome.text.contains("effect:"))
    #expect(
      outcome.diagnostics == [
        "gone: lamp/effect: no longer announced; remove it from the file by hand"
      ]
    )
  }

  @Test func `an unedited field that is no longer announced is removed`() throws {
    let stepless = Self.exposes.replacing(#","value_step":1"#, with: "").replacing(
      #""value_max":10"#,
      with: #""value_max":10.5"#
    )
    let outcome = try run(announced(), then: announced(stepless))
    #expect(
      outcome.changes == [
        "changed lamp/delay/type", "changed lamp/delay/range", "removed lamp/delay/step",
      ]
    )
    #expect(!outcome.text.contains("step:"))
  }

  @Test func `a removed property stays removed`() throws {
    let both = announced(Self.exposes + Self.effect)
    let outcome = try run(both, then: both) { text in
      text.split(separator: "    effect:")[0] + ""
    }
    #expect(outcome.changes == [])
    #expect(!outcome.text.contains("effect"))
  }

  @Test func `a new device is added and a missing one is reported`() throws {
    let lamp =
      #"{"ieee_address":"0x02","friendly_name":"Ofen","definition":{"exposes":[\#(Self.exposes)]}}"#
    let ofen = [Announcement(topic: "zigbee2mqtt/bridge/devices", text: "[\(lamp)]")]
    let outcome = try run(announced(), then: ofen) { $0 + "# the end" }
    #expect(outcome.changes == ["added ofen"])
    #expect(
      outcome.diagnostics == ["gone: lamp: no longer announced; remove it from the file by hand"]
    )
    #expect(outcome.text.contains("lamp:\n"))
    #expect(outcome.text.contains("# the end\n\n# 0x02\nofen:\n"))
  }

  @Test func `a device that was renamed keeps its identifier`() throws {
    let renamed = Fixture.device(exposes: "[\(Self.exposes)]", name: "Büro/Lampe")
    let outcome = try run(announced(), then: renamed)
    #expect(outcome.changes == ["changed lamp/name", "changed lamp/topic"])
    #expect(outcome.text.contains("lamp:\n  name: Büro/Lampe\n"))
  }

  @Test func `without a record the whole file counts as edited`() throws {
    let before = try #require(Fixture.plan(announced()).files.first)
    for record in [nil, Array("{".utf8)] as [[UInt8]?] {
      let present = ImportPlan.ExistingFile(file: before.new, record: record)
      let plan = try Fixture.plan(
        announced(Self.wider + Self.effect),
        present: [.zigbee2mqtt: present]
      )
      let after = try #require(plan.files.first)
      #expect(after.changes.map(\.path) == ["lamp/effect"])
      #expect(after.text.contains("range: [0, 10]"))
      #expect(plan.diagnostics.contains { $0.subject == "lamp/delay/range" && $0.kind == .kept })
    }
  }

  @Test func `aliases in a file are kept`() throws {
    let outcome = try run(announced(), then: announced(Self.wider)) { text in
      text.replacing("range: [0, 10]", with: "range: &r [0, 10]")
        + "other:\n  properties:\n    x: {type: integer, range: *r, command: {topic: a/b}}\n"
    }
    #expect(outcome.changes == ["changed lamp/delay/range"])
    #expect(outcome.text.contains("range: &r [0, 20]"))
  }

  /// A home of these devices with some numbers and lists changed.
  private func home(
    _ devices: [JSONValue],
    _ generator: inout SeededGenerator
  ) -> [Announcement] {
    let list = JSONValue.array(devices.map { changed($0, &generator) })
    return [
      Announcement(topic: "zigbee2mqtt/bridge/devices", payload: JSONWriter.bytes(list))
    ]
  }

  private func changed(_ value: JSONValue, _ generator: inout SeededGenerator) -> JSONValue {
    switch value {
    case .integer(let number) where number > 20 && Bool.random(using: &generator):
      return .integer(number + 10)
    case .array(let elements):
      let isList = elements.count > 3 && Int.random(in: 0..<4, using: &generator) == 0
      return .array((isList ? elements.dropLast() : elements[...]).map { changed($0, &generator) })
    case .object(let members):
      return .object(members.map { .init($0.name, changed($0.value, &generator)) })
    case .null, .boolean, .integer, .number, .string: return value
    }
  }

  @Test(arguments: 1...40)
  func `comments survive every later announcement`(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let all = try JSONParser.parse(Fixture.text("bridge-devices.json")).elements ?? []
    let devices = Array(all.shuffled(using: &generator).prefix(8))
    let before = try #require(Fixture.plan(home(devices, &generator)).files.first)
    var lines: [String] = []
    var comments: [String] = []
    for line in before.text.split(separator: "\n", omittingEmptySubsequences: false) {
      let comment = "# \(comments.count): größer"
      switch Int.random(in: 0..<8, using: &generator) {
      case 0:
        lines += [line.prefix { $0 == " " } + comment, String(line)]
        comments.append(comment)
      case 1 where line.hasSuffix(":") || line.contains(": "):
        lines.append("\(line)  \(comment)")
        comments.append(comment)
      default: lines.append(String(line))
      }
    }
    let edited = lines.joined(separator: "\n")
    let present = ImportPlan.ExistingFile(file: Array(edited.utf8), record: before.record)
    let plan = try Fixture.plan(
      home(devices, &generator),
      present: [.zigbee2mqtt: present]
    )
    let after = try #require(plan.files.first)
    #expect(after.isChanged)
    for comment in comments { #expect(after.text.contains(comment)) }
    #expect(try !Loaded.devices(["a.yaml": after.text]).isEmpty)
    #expect(plan.diagnostics.allSatisfy { $0.kind != .kept && $0.kind != .refused })
  }

  @Test func `importing a whole home twice changes nothing`() throws {
    let first = try Fixture.plan(Fixture.all())
    var present: [ImportSource: ImportPlan.ExistingFile] = [:]
    for file in first.files { present[file.source] = file.asPresent }
    let second = try Fixture.plan(Fixture.all().reversed(), present: present)
    #expect(second.files.count == 3)
    for (before, after) in zip(first.files, second.files) {
      #expect(after.new == before.new)
      #expect(after.record == before.record)
      #expect(after.changes.isEmpty)
    }
    #expect(second.diagnostics == first.diagnostics)
  }
}

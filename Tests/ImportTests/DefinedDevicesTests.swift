// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Testing

/// Imports beside the files of earlier imports, with every choice of sources.
struct DefinedDevicesTests {
  private static let lamp = "wohnzimmer-decke"

  /// Zigbee2MQTT with its announcements to Home Assistant.
  private static func home() throws -> [Announcement] {
    try Fixture.zigbee2mqtt() + Fixture.messages("homeassistant.txt")
  }

  /// The identifiers that a plan adds.
  private static func added(_ plan: ImportPlan) -> [String] {
    plan.files.flatMap(\.changes).filter { $0.kind == .added }.map(\.path)
  }

  private static func lines(_ plan: ImportPlan) -> [String] {
    plan.diagnostics.map { "\($0.subject): \($0.reason)" }
  }

  @Test(arguments: ["--only", "--base"])
  func `a device of a Zigbee2MQTT that is left out is none of Home Assistant's`(
    option: String
  ) throws {
    let plan = try Fixture.plan(Self.home()) { request in
      if option == "--only" { request.sources = [.homeassistant] } else { request.base = "wrong" }
    }
    #expect(plan.files.map(\.source) == [.homeassistant])
    #expect(!Self.added(plan).contains(Self.lamp))
    #expect(
      Self.lines(plan).contains(
        "1 entity: from Zigbee2MQTT at zigbee2mqtt, which \(option) leaves out"
      )
    )
  }

  @Test func `all Zigbee2MQTT are looked for unless all are imported anyway`() {
    var request = ImportPlan.Request()
    #expect(request.bridgeFilters == [])
    request.base = "a/b/c"
    #expect(request.bridgeFilters == ["+/bridge/devices", "+/+/bridge/devices"])
    #expect(!request.includes(Announcement(topic: "zigbee2mqtt/bridge/devices", text: "[]")))
    #expect(request.includes(Announcement(topic: "a/b/c/bridge/devices", text: "[]")))
    request.sources = [.homie]
    #expect(request.bridgeFilters == [])
    request.sources = [.homeassistant]
    request.base = nil
    #expect(request.bridgeFilters == ["+/bridge/devices", "+/+/bridge/devices"])
  }

  @Test(arguments: [true, false])
  func `a device that another import has defined is named as such`(isBridgeRead: Bool) throws {
    let file = try #require(Fixture.plan(Fixture.zigbee2mqtt()).files.first)
    let announced = try isBridgeRead ? Self.home() : Fixture.messages("homeassistant.txt")
    let plan = try Fixture.plan(
      announced,
      present: [.zigbee2mqtt: file.asPresent],
      others: Loaded.devices(["imported-zigbee2mqtt.yaml": file.text])
    ) { $0.sources = [.homeassistant] }
    #expect(!Self.added(plan).contains(Self.lamp))
    #expect(
      Self.lines(plan).contains(
        isBridgeRead
          ? "1 entity: from Zigbee2MQTT at zigbee2mqtt, and in another device file already"
          : "Wohnzimmer/Decke: already in another device file, as 'wohnzimmer-decke'"
      ),
      "\(Self.lines(plan))"
    )
  }

  @Test func `a device that was imported from Home Assistant stays there`() throws {
    let first = try #require(Fixture.plan(Fixture.messages("homeassistant.txt")).files.first)
    #expect(first.text.contains("\n\(Self.lamp):\n"))
    let plan = try Fixture.plan(
      Fixture.zigbee2mqtt(),
      present: [.homeassistant: first.asPresent],
      others: Loaded.devices(["imported-homeassistant.yaml": first.text])
    )
    #expect(!Self.added(plan).contains { $0.hasPrefix(Self.lamp) })
    #expect(
      Self.lines(plan).contains(
        "Wohnzimmer/Decke: already in another device file, as 'wohnzimmer-decke'"
      )
    )
  }

  @Test func `an identifier in the file of another import is in use`() throws {
    let switched =
      #"[{"type":"switch","features":[{"type":"binary","name":"state","property":"state","#
      + #""access":7,"value_on":"ON","value_off":"OFF"}]}]"#
    let bridge = Fixture.device(exposes: switched, name: "Stehlampe")
    let file = try #require(Fixture.plan(bridge).files.first)
    let plan = try Fixture.plan(
      Fixture.messages("homeassistant.txt"),
      present: [.zigbee2mqtt: file.asPresent],
      others: Loaded.devices(["imported-zigbee2mqtt.yaml": file.text])
    )
    #expect(Self.added(plan).contains("stehlampe-2"))
    #expect(!Self.added(plan).contains("stehlampe"))
  }

  @Test func `a second import of all sources changes nothing`() throws {
    let first = try Fixture.plan(Self.home())
    var present: [ImportSource: ImportPlan.ExistingFile] = [:]
    var files: [String: String] = [:]
    for file in first.files {
      present[file.source] = file.asPresent
      files[file.source.fileName] = file.text
    }
    let second = try Fixture.plan(
      Self.home(),
      present: present,
      others: Loaded.devices(files)
    )
    #expect(second.files.count == 2 && second.files.allSatisfy { !$0.isChanged })
    #expect(!Self.lines(second).contains { $0.contains("already in another device file") })
  }

  @Test func `a gateway refuses commands that control a bridge, except those that are in the file`()
    throws
  {
    let join = """
      {"unique_id":"j","name":"Join","command_topic":"zigbee2mqtt/bridge/request/permit_join",\
      "device":{"identifiers":["b"],"name":"Bridge"}}
      """
    let fan = """
      {"unique_id":"f","name":"Fan","command_topic":"rack/fan/set",\
      "device":{"identifiers":["b"],"name":"Bridge"}}
      """
    let announced = [("j", join), ("f", fan)].map {
      Announcement(topic: "homeassistant/switch/\($0)/config", text: $1)
    }
    let byHand = try #require(Fixture.plan(announced).files.first)
    #expect(byHand.text.contains("permit_join"))

    let alone = try Fixture.plan(announced) { $0.isUnattended = true }
    #expect(alone.files.first?.text.contains("permit_join") == false)
    #expect(alone.files.first?.text.contains("rack/fan/set") == true)
    #expect(alone.diagnostics.filter { $0.kind == .refused }.map(\.subject) == ["Bridge: join"])

    let again = try Fixture.plan(
      announced,
      present: [.homeassistant: byHand.asPresent],
      others: Loaded.devices(["imported-homeassistant.yaml": byHand.text])
    ) { $0.isUnattended = true }
    #expect(again.files.map(\.isChanged) == [false])
    #expect(again.diagnostics.isEmpty)
  }
}

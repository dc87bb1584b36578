// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import Import
import JSON
import Operations
import TestBroker
import Testing
import Values

/// Import of the groups of Zigbee2MQTT as entries of `groups:`.
struct GroupTests {
  /// `bridge/devices` with lamps, each with an address, a name and the endpoint of its state.
  private static func home(
    _ lamps: [(address: String, name: String, endpoint: String?)],
    groups: String
  ) -> [Announcement] {
    let devices = lamps.map { lamp in
      let state = lamp.endpoint.map { "state_\($0)" } ?? "state"
      let place = lamp.endpoint.map { #""endpoint":"\#($0)","# } ?? ""
      return #"{"ieee_address":"\#(lamp.address)","friendly_name":"\#(lamp.name)","#
        + #""definition":{"exposes":[{"type":"light",\#(place)"features":["#
        + #"{"type":"binary","name":"state","property":"\#(state)",\#(place)"value_on":"ON","#
        + #""value_off":"OFF","value_toggle":"TOGGLE","access":7},"#
        + #"{"type":"numeric","name":"brightness","property":"brightness","access":7,"#
        + #""value_min":0,"value_max":254}]}]}}"#
    }
    return [
      Announcement(
        topic: "zigbee2mqtt/bridge/devices",
        text: "[\(devices.joined(separator: ","))]"
      ),
      Announcement(topic: "zigbee2mqtt/bridge/groups", text: groups),
    ]
  }

  private static func group(_ id: Int, _ name: String, _ members: [String]) -> String {
    let listed = members.map { #"{"ieee_address":"\#($0)","endpoint":1}"# }
    return
      #"{"id":\#(id),"friendly_name":"\#(name)","members":[\#(listed.joined(separator: ","))]}"#
  }

  private static let lamps: [(address: String, name: String, endpoint: String?)] = [
    ("0x1", "One", nil), ("0x2", "Two", nil),
  ]
  private static let both = home(lamps, groups: "[\(group(7, "Both", ["0x1", "0x2"]))]")

  @Test func `a group has its members, its topic and a profile`() throws {
    let text = try #require(Fixture.plan(Fixture.zigbee2mqtt()).files.first).text
    #expect(
      text.hasSuffix(
        """

        groups:
          jalousien-alle:
            name: Jalousien/alle
            device: {identifiers: [zigbee2mqtt_1221051039810110150109113116116_2]}
            members: [jalousie-sued, jalousie-west, rollo-schlafzimmer]
            topic: zigbee2mqtt/Jalousien/alle
            profile: zigbee2mqtt/cover

          wohnzimmer-alle:
            name: Wohnzimmer alle
            device: {identifiers: [zigbee2mqtt_1221051039810110150109113116116_1]}
            members: [wohnzimmer-decke, wohnzimmer-stehlampe, wohnzimmer-fernseher-hinten]
            topic: zigbee2mqtt/Wohnzimmer alle
            profile: zigbee2mqtt/light

        """
      )
    )
    let devices = try Loaded.devices(["a.yaml": text])
    let room = try #require(devices.first { $0.id == "wohnzimmer-alle" })
    #expect(room.group?.members.count == 3)
    let shared = ["power", "brightness", "color_temp"]
    for id in shared {
      let property = room.properties.first { $0.id == id }
      #expect(property?.command.topic == "zigbee2mqtt/Wohnzimmer alle/set", "\(id)")
    }
    // What all lamps allow.
    #expect(room.properties.first { $0.id == "color_temp" }?.kind.numberRule?.range == 250...454)
    let identifiers = ["zigbee2mqtt_1221051039810110150109113116116_1"]
    #expect(room.details?.identifiers == identifiers)
  }

  @Test func `an identifier that clashes with a device's is numbered`() throws {
    let announced = Self.home(Self.lamps, groups: "[\(Self.group(7, "One", ["0x1", "0x2"]))]")
    let text = try #require(Fixture.plan(announced).files.first).text
    #expect(text.contains("\n  one-2:\n    name: One\n"))
    #expect(text.contains("    members: [one, two]\n"))
  }

  @Test func `a group is the bridge's if all of its members are in files`() throws {
    #expect(
      try Fixture.plan(Self.both).bridgeGroups == [
        BridgeGroup(
          id: "both",
          topic: "zigbee2mqtt/Both",
          members: ["one": "zigbee2mqtt/One", "two": "zigbee2mqtt/Two"]
        )
      ]
    )
    let wider = Self.home(Self.lamps, groups: "[\(Self.group(7, "Both", ["0x1", "0x2", "0x3"]))]")
    #expect(try Fixture.plan(wider).bridgeGroups == [])
  }

  @Test func `members that are not imported are named`() throws {
    let announced = Self.home(
      Self.lamps,
      groups: "[\(Self.group(7, "Three", ["0x1", "0x2", "0x3"]))]"
    )
    #expect(
      try Fixture.diagnostics(announced) == [
        "partly: Three: messages to the group reach members that are not imported too: 0x3"
      ]
    )
  }

  @Test func `a member in another file is a member by its identifier there`() throws {
    let mine = "mine: {profile: zigbee2mqtt/light, topic: zigbee2mqtt/One}"
    let plan = try Fixture.plan(Self.both, others: Loaded.devices(["a.yaml": mine]))
    let text = try #require(plan.files.first).text
    #expect(text.contains("    members: [mine, two]\n"))
    #expect(try Loaded.devices(["a.yaml": mine, "b.yaml": text]).count == 3)
  }

  @Test func `a group of endpoints is a device, and the reason is named`() throws {
    let announced = Self.home(
      [("0x1", "One", nil), ("0x2", "Two", "l1")],
      groups: "[\(Self.group(7, "Both", ["0x1", "0x2"]))]"
    )
    let plan = try Fixture.plan(announced)
    let text = try #require(plan.files.first).text
    #expect(!text.contains("groups:"))
    #expect(text.contains("\nboth:\n"))
    #expect(
      plan.diagnostics.map { "\($0.subject): \($0.reason)" } == [
        "Both: imported as a device, not as a group: its members do not all have power"
      ]
    )
  }

  @Test func `a second import changes what was not edited, and keeps the rest`() throws {
    let first = try #require(Fixture.plan(Self.both).files.first)
    let same = try #require(
      Fixture.plan(Self.both, present: [.zigbee2mqtt: first.asPresent]).files.first
    )
    #expect(!same.isChanged && same.changes.isEmpty)

    let edited = first.text.replacing(
      "    name: Both\n",
      with: "    name: Both  # mine\n    panel: false\n"
    )
    let wider = Self.home(
      Self.lamps + [("0x3", "Three", nil)],
      groups: "[\(Self.group(7, "Both", ["0x1", "0x2", "0x3"])),\(Self.group(8, "Last", ["0x3"]))]"
    )
    let present = ImportPlan.ExistingFile(file: Array(edited.utf8), record: first.record)
    let second = try #require(Fixture.plan(wider, present: [.zigbee2mqtt: present]).files.first)
    #expect(
      second.changes == [
        ImportChange(.added, "three"), ImportChange(.changed, "both/members"),
        ImportChange(.added, "last"),
      ]
    )
    #expect(second.text.contains("    name: Both  # mine\n    panel: false\n"))
    #expect(second.text.contains("    members: [one, two, three]\n"))
    #expect(second.text.contains("\n\n  last:\n    name: Last\n"))
    #expect(try Loaded.devices(["a.yaml": second.text]).count == 5)

    let none = try Fixture.plan(
      Self.home(Self.lamps + [("0x3", "Three", nil)], groups: "[]"),
      present: [.zigbee2mqtt: second.asPresent]
    )
    let gone = "no longer announced; remove it from the file by hand"
    #expect(
      none.diagnostics == [
        ImportDiagnostic(.gone, "both", gone), ImportDiagnostic(.gone, "last", gone),
      ]
    )
  }

  @Test func `a group that was removed stays removed`() throws {
    let first = try #require(Fixture.plan(Self.both).files.first)
    let lines = first.text.split(separator: "\n", omittingEmptySubsequences: false)
    let devices = lines.prefix { $0 != "groups:" }.joined(separator: "\n")
    let present = ImportPlan.ExistingFile(file: Array(devices.utf8), record: first.record)
    let second = try #require(Fixture.plan(Self.both, present: [.zigbee2mqtt: present]).files.first)
    #expect(!second.isChanged && second.changes.isEmpty)
  }

  @Test func `a file without groups gets the section, and one on a line is left as it is`() throws {
    let alone = Self.home(Self.lamps, groups: "[]")
    let first = try #require(Fixture.plan(alone).files.first)
    let second = try #require(
      Fixture.plan(Self.both, present: [.zigbee2mqtt: first.asPresent]).files.first
    )
    #expect(second.text.hasPrefix(first.text + "\ngroups:\n  both:\n"))

    let line = first.text + "groups: {mine: {members: [one]}}\n"
    let present = ImportPlan.ExistingFile(file: Array(line.utf8), record: first.record)
    let third = try Fixture.plan(Self.both, present: [.zigbee2mqtt: present])
    #expect(third.files.first?.text == line)
    #expect(third.diagnostics.map(\.kind) == [.refused])
  }

  @Test func `a group that was imported as a device remains one`() throws {
    let device =
      "both: {name: Both, profile: zigbee2mqtt/light, topic: zigbee2mqtt/Both}\n"
    let present = ImportPlan.ExistingFile(file: Array(device.utf8), record: nil)
    let text = try #require(Fixture.plan(Self.both, present: [.zigbee2mqtt: present]).files.first)
      .text
    #expect(!text.contains("groups:"))
    #expect(text.contains("both: {name: Both, "))
  }
}

/// An imported group that is driven.
@Suite(.blocking) struct GroupImportScenarios {
  @Test func `a change of an imported group is one message, and its members confirm it`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    #expect(try home.settled(["import"]).code == 0)
    try home.startGateway()
    let client = home.client
    client.publish("settle/wohnzimmer-alle/brightness/set", "77")
    let topic = "zigbee2mqtt/Wohnzimmer alle/set"
    #expect(client.waitFor { $0.contains { $0.topic == topic } })
    #expect(client.texts(on: topic) == [#"{"brightness":77}"#])
    let members = ["Wohnzimmer/Decke", "Wohnzimmer/Stehlampe", "Wohnzimmer/Fernseher hinten"]
    for member in members { client.publish("zigbee2mqtt/\(member)", #"{"brightness":77}"#) }
    #expect(
      client.waitFor { messages in
        messages.contains {
          $0.topic == "settle/wohnzimmer-alle/brightness/event" && $0.text.contains("confirmed")
        }
      }
    )
    for member in members { #expect(client.texts(on: "zigbee2mqtt/\(member)/set") == []) }
    // By hand: the group shows what its members have in common.
    for member in members { client.publish("zigbee2mqtt/\(member)", #"{"brightness":12}"#) }
    #expect(
      client.waitFor { messages in
        messages.last { $0.topic == "settle/wohnzimmer-alle/brightness" }?.text == "12"
      }
    )
  }

  @Test func `a lane of its own for one member is a mistake that names the group`() throws {
    let home = try ImportHome(Fixture.zigbee2mqtt())
    let path = "\(home.folder)/settle.yaml"
    let settings = try #require(TextFile.read(path))
    try TextFile.write(settings + "lanes: {zigbee: {rate: 10/s}, slow: {rate: 1/s}}\n", to: path)
    #expect(try home.settled(["import"]).code == 0)
    let file = "\(home.folder)/devices/imported-zigbee2mqtt.yaml"
    let written = try #require(TextFile.read(file))
    #expect(written.contains("  topic: zigbee2mqtt/Wohnzimmer/Decke\n  lane: zigbee\n"))
    // A lane of its own for one lamp, as a group with a topic does not allow.
    let edited = written.replacing(
      "  topic: zigbee2mqtt/Wohnzimmer/Decke\n  lane: zigbee\n",
      with: "  topic: zigbee2mqtt/Wohnzimmer/Decke\n  lane: slow\n"
    )
    try TextFile.write(edited, to: file)
    let checked = try home.settled(["check"])
    #expect(checked.code == 78)
    #expect(checked.output.contains("are in different lanes"))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import Operations
import Testing
@testable import Import

/// What one device or announcement has wrong, or of its own, never concerns the others.
struct RobustnessTests {
  /// A thermostat that only reports its mode.
  private static let climate = """
    {"type":"climate","features":[
    {"type":"enum","name":"system_mode","property":"system_mode","access":1,"values":["off","heat"]},
    {"type":"numeric","name":"local_temperature","property":"local_temperature","access":1}]}
    """
  /// A choice of the same name that can be set.
  private static let choice = """
    {"type":"enum","name":"system_mode","property":"system_mode","access":3,"values":["off","heat"]}
    """

  private static func entry(_ address: String, _ exposes: String) -> String {
    """
    {"ieee_address":"\(address)","friendly_name":"d\(address)","type":"Router","definition":\
    {"model":"M","vendor":"V","exposes":\(exposes)}}
    """
  }

  private static let lamp = """
    [{"type":"switch","features":[
    {"type":"binary","name":"state","property":"state","access":7,"value_on":"ON","value_off":"OFF"}]}]
    """

  /// The plan that `settle import` makes in an empty folder.
  private func planned(_ announcements: [Announcement], profile: String? = nil) throws
    -> ImportPlan
  {
    let folder = try TemporaryFolder.make("settle-import")
    defer {
      TemporaryFolder.remove("\(folder)/profiles")
      TemporaryFolder.remove(folder)
    }
    if let profile {
      try AtomicFile.makeFolder("\(folder)/profiles")
      try TextFile.write(profile, to: "\(folder)/profiles/own.yaml")
    }
    var overrides = ConfigurationLoader.Overrides()
    overrides.devices = folder
    let planner = ImportPlanner(overrides, environment: [:], folder: folder)
    return try planner.plan(
      announcements,
      ImportPlan.Request(),
      present: [:],
      devices: Registry([Device]())
    )
  }

  @Test(arguments: [[climate, choice], [choice, climate]])
  func `a device with a mode to read and another to set does not stop the others`(
    exposes: [String]
  ) throws {
    let both = "[\(exposes.joined(separator: ","))]"
    let list = [Self.entry("1", both), Self.entry("2", Self.lamp)]
    let plan = try planned([
      Announcement(
        topic: "zigbee2mqtt/bridge/devices",
        text: "[\(list.joined(separator: ","))]"
      )
    ])
    let file = try #require(plan.files.first)
    #expect(file.devices == 2)
    #expect(plan.diagnostics.allSatisfy { $0.kind != .refused })
    let odd = try #require(Loaded.devices(["a.yaml": file.text]).first { $0.id == "d1" })
    #expect(odd.properties.filter { !$0.isReadOnly }.count == 1)
  }

  @Test func `a mistake in the lines of a profile concerns the devices that have it`() throws {
    let list = [
      Self.entry("1", Self.lamp), Self.entry("2", "[\(Self.choice)]"), Self.entry("3", Self.lamp),
    ]
    let plan = try planned(
      [
        Announcement(
          topic: "zigbee2mqtt/bridge/devices",
          text: "[\(list.joined(separator: ","))]"
        )
      ],
      profile: """
        zigbee2mqtt/switch:
          properties:
            power:
              type: boolean
              excludes: [missing]
              command: {topic: $topic/set, payload: {state: $value}}
        """
    )
    #expect(plan.files.first?.devices == 1)
    #expect(
      plan.diagnostics.filter { $0.kind == .refused }.map(\.subject) == ["d1", "d3"]
    )
  }

  @Test func `a lamp with a transition of its own sets it like any other property`() throws {
    let text = try Fixture.file(
      Fixture.device(
        exposes: """
          [{"type":"light","features":[
          {"type":"binary","name":"state","property":"state","access":7,"value_on":"ON","value_off":"OFF"}]},
          {"type":"numeric","name":"transition","property":"transition","access":7,"value_step":1}]
          """
      )
    )
    let lamp = try #require(Loaded.devices(["a.yaml": text]).first)
    #expect(lamp.options == [] && lamp.properties.contains { $0.id == "transition" })
  }

  @Test(arguments: [
    (#""ids":["a"]"#, #""ids":["b","a"]"#, 1),
    (#""ids":"a""#, #""ids":["a"],"cns":[["mac","x"]]"#, 1),
    (#""ids":["a"],"cns":[["mac","AA:BB"]]"#, #""ids":["b"],"cns":[["mac","aa:bb"]]"#, 1),
    (#""cns":[["mac","x"]]"#, #""cns":[["mac","y"],["mac","x"]]"#, 1),
    (#""ids":["a"]"#, #""ids":["b"]"#, 2),
    (#""cns":[["mac","x"],["a","1"]]"#, #""cns":[["mac","y"],["b","1"]]"#, 2),
  ])
  func `a device is one if an identifier or a connection is shared`(
    first: String,
    second: String,
    count: Int
  ) throws {
    let announced = [first, second].enumerated().map { number, device in
      Announcement(
        topic: "homeassistant/switch/s\(number)/config",
        text: #"{"cmd_t":"s\#(number)/set","name":"S\#(number)","dev":{\#(device),"name":"D"}}"#
      )
    }
    #expect(try #require(Fixture.plan(announced).files.first).devices == count)
  }

  @Test func `a third announcement makes one device of two`() throws {
    let announced = ["a", "b", #"b","a"#].enumerated().map { number, ids in
      Announcement(
        topic: "homeassistant/switch/s\(number)/config",
        text: #"{"cmd_t":"s\#(number)/set","name":"S\#(number)","dev":{"ids":["\#(ids)"]}}"#
      )
    }
    #expect(try #require(Fixture.plan(announced).files.first).devices == 1)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import FoundationEssentials
@testable import HomeAssistant
import JSON
import LastOut
import Testing
import Values

/// Lamps in Home Assistant's JSON schema.
@Suite struct LightTests: AnnouncedDevices {
  // MARK: - Which lamps

  @Test func `the lamps of endpoints are lights of their own`() throws {
    let found = try entities(
      """
      strip:
        properties:
          power_l1: {type: boolean, command: {topic: a}}
          brightness_l1: {type: integer, range: [0, 254], command: {topic: b}}
          color_temp_l1: {type: integer, range: [150, 500], command: {topic: c}}
          power_l2: {type: boolean, command: {topic: d}}
          brightness_l2: {type: integer, range: [0, 254], command: {topic: e}}
          power_l3: {type: boolean, command: {topic: f}}
      """
    )
    #expect(
      found.mapValues { $0["p"]?.string } == [
        "power_l1": "light", "power_l2": "light", "power_l3": "switch",
      ]
    )
    #expect(found["power_l1"]?["supported_color_modes"] == ["color_temp"])
    #expect(found["power_l1"]?["name"] == "L1")
    #expect(found["power_l2"]?["supported_color_modes"] == ["brightness"])
    #expect(found["power_l2"]?["command_topic"] == "settle/strip/power_l2/light/set")
  }

  private static let plainDimmer =
    "lamp: {properties: {brightness: {type: integer, range: [0, 99], command: {topic: t}}}}\n"

  @Test func `a dimmer without a switch is a light`() throws {
    let light = try #require(
      try entities(Self.plainDimmer)["brightness"]
    )
    #expect(light["p"] == "light")
    #expect(light["brightness_scale"] == 99)
    #expect(light["state_topic"] == "settle/lamp/brightness/light")
  }

  @Test func `effects are a list`() throws {
    for type in ["action", "choice"] {
      let found = try entities(
        profile("zigbee2mqtt/light", "  properties:\n")
          + "    effect: {type: \(type), values: [blink, okay], command: {topic: x}}\n"
      )
      #expect(found.keys.filter { $0 != "problem" } == ["power"])
      #expect(found["power"]?["effect"] == true)
      #expect(found["power"]?["effect_list"] == ["blink", "okay"])
    }
  }

  // MARK: - What it shows

  /// The state of the first lamp after these reports.
  private func state(_ text: String, _ values: [String: Light.Reading]) throws -> JSONValue? {
    let device = try #require(try devices(text).first)
    let properties = device.properties
    let light = try #require(Light.all(in: device).first)
    return light.state(properties) { values[properties[$0].id] ?? Light.Reading(nil) }
  }

  private static let reports: [[String]] = {
    let folder = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast()
      .joined(separator: "/")
    let text = try? String(
      contentsOfFile: folder + "/Fixtures/zigbee2mqtt-lamps.txt",
      encoding: .utf8
    )
    return (text ?? "").split(separator: "\n").filter { !$0.hasPrefix("#") }
      .map { $0.split(separator: " ", maxSplits: 3).map(String.init) }
  }()

  @Test func `there are reports of 24 real lamps`() {
    #expect(Self.reports.count == 24)
  }

  @Test(arguments: reports)
  func `the color mode of a real lamp is the one that it reports`(_ report: [String]) throws {
    try #require(report.count == 4)
    let left = [
      "white": "  properties: {color: none}\n", "color": "  properties: {color_temp: none}\n",
    ]
    let text = profile("zigbee2mqtt/light", left[report[0]] ?? "")
    let document = try JSONParser.parse(Array(report[2].utf8).span)
    let properties = try #require(try devices(text).first).properties
    var values: [String: Light.Reading] = [:]
    for property in properties {
      let member = property.id == "power" ? "state" : property.id
      guard let wire = document[member] else { continue }
      values[property.id] = Light.Reading(property.value(fromWire: wire))
    }

    let shown = try #require(try state(text, values))

    #expect(shown["color_mode"]?.string == report[1], "\(report[3])")
    #expect(shown["color_temp"] == (report[1] == "color_temp" ? document["color_temp"] : nil))
    if report[1] == "xy", let color = document["color"], color["x"] != nil {
      let (x, y) = (shown["color"]?["x"]?.double ?? 0, color["x"]?.double ?? 1)
      #expect((x - y).magnitude < 0.001)
    }
    #expect(shown["state"] == document["state"] ?? .null)
    #expect(shown["brightness"] == document["brightness"])
  }

  @Test func `what was requested last counts until the lamp shows it`() throws {
    let text = profile("zigbee2mqtt/light")
    let color = Light.Reading(.color(.xy(x: 0.7, y: 0.3)), isPending: true)
    let shown = try state(
      text,
      [
        "color_temp": Light.Reading(.number(300)), "color": color,
        "color_mode": Light.Reading(.text("color_temp")),
      ]
    )
    #expect(shown?["color_mode"] == "xy")
    #expect(shown?["color"]?["x"] == 0.7)
  }

  @Test func `without a reported mode the last change counts`() throws {
    let text = profile("tasmota/color-light")
    func mode(white: Int64, color: Int64) throws -> JSONValue? {
      try state(
        text,
        [
          "color_temp": Light.Reading(
            .number(300),
            since: Moment.zero.advanced(by: .seconds(white))
          ),
          "color": Light.Reading(
            .color(.hs(hue: 10, saturation: 90)),
            since: Moment.zero.advanced(by: .seconds(color))
          ),
        ]
      )?["color_mode"]
    }
    #expect(try mode(white: 2, color: 1) == "color_temp")
    #expect(try mode(white: 1, color: 2) == "hs")
    // One report changed both: bridges also say which color a white tone is.
    #expect(try mode(white: 2, color: 2) == "color_temp")
  }

  @Test func `a lamp that does not report its power is off at brightness 0`() throws {
    let text = profile("wled/light")
    func shown(_ on: Bool?, at switched: Int64, level: Double, at changed: Int64) throws
      -> JSONValue?
    {
      try state(
        text,
        [
          "power": Light.Reading(
            on.map { .boolean($0) },
            since: Moment.zero.advanced(by: .seconds(switched))
          ),
          "brightness": Light.Reading(
            .number(level),
            since: Moment.zero.advanced(by: .seconds(changed))
          ),
        ]
      )?["state"]
    }
    #expect(try shown(true, at: 1, level: 0, at: 2) == "OFF")
    #expect(try shown(false, at: 1, level: 128, at: 2) == "ON")
    #expect(try shown(false, at: 3, level: 128, at: 2) == "OFF")
    #expect(try shown(nil, at: 0, level: 128, at: 2) == "ON")
  }

  @Test func `a group of lamps that report their power is off when they are`() throws {
    let text = """
      one: {profile: zigbee2mqtt/light, topic: zigbee2mqtt/one}
      two: {profile: zigbee2mqtt/light, topic: zigbee2mqtt/two}
      groups: {both: {members: [one, two], topic: zigbee2mqtt/both}}
      """
    let group = try #require(try devices(text).first { $0.id == "both" })
    let light = try #require(Light.all(in: group).first)
    let state = light.state(group.properties) { place in
      switch group.properties[place].id {
      case "power": Light.Reading(.boolean(false))
      case "brightness": Light.Reading(.number(128))
      default: Light.Reading(nil)
      }
    }
    #expect(state?["state"] == "OFF")
  }

  @Test func `nothing is shown of a lamp of which nothing is known`() throws {
    #expect(try state(profile("zigbee2mqtt/light"), [:]) == nil)
  }

  // MARK: - What is asked of it

  private func members(
    _ text: String,
    _ command: String,
    last: Double? = nil
  ) throws -> [JSONValue.Member] {
    let device = try #require(try devices(text).first)
    let light = try #require(Light.all(in: device).first)
    let parsed = try JSONParser.parse(Array(command.utf8).span)
    return light.members(for: parsed, device.properties, options: device.options, last: last)
  }

  private static let commands: [(String, String, String)] = [
    (
      "zigbee2mqtt/light", #"{"state":"ON","brightness":128,"color_temp":300}"#,
      #"{"power":true,"brightness":128,"color_temp":300}"#
    ),
    (
      "zigbee2mqtt/light", #"{"state":"ON","color":{"x":0.7,"y":0.3},"transition":2,"flash":10}"#,
      #"{"power":true,"color":{"x":0.7,"y":0.3},"transition":2}"#
    ),
    // Home Assistant rounds kelvin to mireds.
    ("zigbee2mqtt/light", #"{"state":"ON","color_temp":149}"#, #"{"power":true,"color_temp":150}"#),
    ("tasmota/dimmer", #"{"state":"OFF","transition":2}"#, #"{"power":false}"#),
    ("zwave-js/dimmer", #"{"state":"ON","brightness":7}"#, #"{"power":true,"brightness":7}"#),
  ]

  @Test(arguments: commands)
  func `a command sets the properties of the lamp`(
    _ profile: String,
    _ command: String,
    _ expected: String
  ) throws {
    let found = try members(self.profile(profile), command, last: 40)
    #expect(JSONWriter.text(.object(found)) == expected)
  }

  @Test(arguments: [
    (#"{"state":"OFF"}"#, #"{"brightness":0}"#), (#"{"state":"ON"}"#, #"{"brightness":40}"#),
    (#"{"state":"ON","brightness":7}"#, #"{"brightness":7}"#),
  ])
  func `a dimmer without a switch is switched by its brightness`(
    _ command: String,
    _ expected: String
  ) throws {
    let found = try members(Self.plainDimmer, command, last: 40)
    #expect(JSONWriter.text(.object(found)) == expected)
  }

  @Test func `levels and white tones are in the units of the lamp`() throws {
    let text = """
      lamp:
        properties:
          power: {type: boolean, command: {topic: a}}
          level: {type: number, range: [0, 1], command: {topic: b}}
          ct: {type: integer, range: [2000, 6500], step: 1, unit: K, command: {topic: c}}
      """
    let found = try members(text, #"{"state":"ON","brightness":128,"color_temp":250}"#)
    #expect(found.first { $0.name == "level" }?.value == 0.502)
    #expect(found.first { $0.name == "ct" }?.value == 4000)
    let shown = try state(
      text,
      ["level": Light.Reading(.number(0.502)), "ct": Light.Reading(.number(4000))]
    )
    #expect(shown?["brightness"] == 128)
    #expect(shown?["color_temp"] == 250)
  }
}

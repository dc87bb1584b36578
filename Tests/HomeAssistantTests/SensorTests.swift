// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import HomeAssistant
import JSON
import Testing

/// The entities of what devices only report.
@Suite struct SensorTests: AnnouncedDevices {
  private static let plug = """
    plug:
      area: Living room
      properties:
        power: {type: boolean, command: {topic: a}}
        active_power: {type: number, unit: W, state: {topic: s}}
        energy: {type: number, unit: kWh, state: {topic: s}}
        humidity: {type: number, unit: "%", state: {topic: s}}
        battery: {type: number, unit: "%", state: {topic: s}}
        count: {type: number, state: {topic: s}}
        contact: {type: boolean, state: {topic: s}}
        occupancy: {type: boolean, state: {topic: s}}
        phase: {type: choice, values: [a, b], state: {topic: s}}
        note: {type: text, state: {topic: s}}
    """

  /// The members of an entity that are announced beside its name and state topic.
  private func more(_ entity: JSONValue?) -> String {
    let common: Set = ["unique_id", "name", "state_topic"]
    guard case .object(let members)? = entity else { return "none" }
    return JSONWriter.text(.object(members.filter { !common.contains($0.name) }))
  }

  @Test(arguments: [
    (
      "active_power",
      #"{"p":"sensor","device_class":"power","state_class":"measurement","unit_of_measurement":"W"}"#
    ),
    (
      "energy",
      #"{"p":"sensor","device_class":"energy","state_class":"total_increasing","#
        + #""unit_of_measurement":"kWh"}"#
    ),
    (
      "humidity",
      #"{"p":"sensor","device_class":"humidity","state_class":"measurement","unit_of_measurement":"%"}"#
    ),
    (
      "battery",
      #"{"p":"sensor","entity_category":"diagnostic","device_class":"battery","#
        + #""state_class":"measurement","unit_of_measurement":"%"}"#
    ),
    ("count", #"{"p":"sensor","state_class":"measurement"}"#),
    // A contact that is true is closed, and on is an open door.
    (
      "contact",
      #"{"p":"binary_sensor","payload_on":"false","payload_off":"true","device_class":"door"}"#
    ),
    (
      "occupancy",
      #"{"p":"binary_sensor","payload_on":"true","payload_off":"false","device_class":"occupancy"}"#
    ),
    ("phase", #"{"p":"sensor","device_class":"enum","options":["a","b"]}"#),
    ("note", #"{"p":"sensor"}"#),
  ])
  func `a read-only property is a sensor of the class of its unit and name`(
    _ property: String,
    _ expected: String
  ) throws {
    let sensor = try entities(Self.plug)[property]
    #expect(more(sensor) == expected)
    #expect(sensor?["state_topic"]?.string == "settle/plug/\(property)")
  }

  @Test(arguments: [
    "on: false, off: true", "on: ON, off: OFF", "on: true, off: false", "on: open",
    "decode: {on: [1, 2], else: off}",
  ])
  func `a contact whose file says which report is on is open then`(words: String) throws {
    let found = try entities(
      "d: {properties: {contact: {type: boolean, \(words), state: {topic: s}}}}"
    )
    #expect(
      more(found["contact"])
        == #"{"p":"binary_sensor","payload_on":"true","payload_off":"false","device_class":"door"}"#
    )
  }

  @Test func `the contact of an endpoint is closed when it is true`() throws {
    let found = try entities(
      """
      d:
        properties:
          contact_l1: {class: door, type: boolean, state: {topic: s}}
          contact_bounce: {type: boolean, state: {topic: s}}
      """
    )
    #expect(found["contact_l1"]?["payload_on"] == "false")
    #expect(found["contact_bounce"]?["payload_on"] == "true")
  }

  @Test func `sensors have no commands and rename nothing, and the room is suggested`() throws {
    let device = try #require(try devices(Self.plug).first)
    let message = try #require(announcer().messages(for: device).first?.payload)
    #expect(message["dev"]?["suggested_area"] == "Living room")
    let found = try entities(Self.plug)
    #expect(found["power"]?["p"] == "switch" && found["power"]?["name"] == .null)
    #expect(found["active_power"]?["name"] == "Active power")
    #expect(found.values.count { $0["command_topic"] != nil } == 1)
  }

  @Test func `a device that is only read has sensors alone`() throws {
    let text = """
      hall:
        name: Hall
        properties: {temperature: {type: number, unit: °C, state: {topic: s}}}
      """
    let found = try entities(text)
    #expect(found.keys.sorted() == ["temperature"])
    // Home Assistant's convention: a device's only entity has the device's name.
    #expect(found["temperature"]?["name"] == .null)
    let single = try #require(try devices(text).first)
    let message = try #require(announcer(.component).messages(for: single).first)
    #expect(message.topic == "homeassistant/sensor/hall/temperature/config")
  }

  @Test func `what a thermostat or a lamp shows is not a sensor too`() throws {
    let thermostat = try entities(
      """
      trv:
        properties:
          target_temperature: {type: number, range: [5, 30], command: {topic: a}}
          local_temperature: {type: number, unit: °C, state: {topic: s}}
          running_state: {type: choice, values: [idle, heat], state: {topic: s}}
          humidity: {type: number, unit: "%", state: {topic: s}}
      """
    )
    #expect(thermostat.keys.sorted() == ["humidity", "target_temperature"])
    let lamp = try entities(profile("zigbee2mqtt/light"))
    #expect(lamp["color_mode"] == nil)
    #expect(lamp["power"]?["p"] == "light")
  }

  @Test func `buttons and properties of one name are entities of their own`() throws {
    let found = try entities(
      """
      toy:
        properties:
          play: {type: action, values: [a b, a-b, a_b], command: {topic: a}}
          play_a_b: {type: number, state: {topic: s}}
      """
    )
    #expect(found["play_a_b"]?["p"] == "sensor")
    #expect(found.values.count { $0["p"] == "button" } == 3)
    #expect(Set(found.values.compactMap { $0["unique_id"]?.string }).count == 4)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import FoundationEssentials
import HomeAssistant
import JSON
import Testing

/// The announcements of devices, compared with Home Assistant's MQTT documentation.
@Suite struct AnnouncementTests: AnnouncedDevices {
  // MARK: - The whole message

  @Test func `a device is one retained message with its origin and availability`() throws {
    let device = try #require(
      try devices(
        """
        desk-lamp:
          name: Desk lamp
          availability: {topic: z/lamp/availability, value: /state, online: online, offline: gone}
          properties:
            level: {type: integer, range: [0, 254], step: 1, unit: "%", \
        command: {topic: z/lamp/set, payload: $value}}
        """
      ).first
    )

    let messages = announcer().messages(for: device)

    #expect(messages.map(\.topic) == ["homeassistant/device/desk-lamp/config"])
    let expected = """
      {"dev":{"ids":["settle_desk-lamp"],"name":"Desk lamp"},"o":{"name":"Settle","sw":"9.9"},\
      "cmps":{"level":{"p":"number","unique_id":"settle_desk-lamp_level","name":null,\
      "command_topic":"settle/desk-lamp/level/set","state_topic":"settle/desk-lamp/level",\
      "min":0,"max":254,"step":1,"mode":"slider","unit_of_measurement":"%","optimistic":false}},\
      "availability":[{"topic":"settle/status"},{"topic":"settle/status/desk-lamp"}],\
      "availability_mode":"all","qos":1}
      """
    #expect(messages.first?.payload.map { JSONWriter.text($0) } == expected)
  }

  @Test func `availability is the gateway's, for devices that report it`() throws {
    let found = try devices(
      """
      quiet: {properties: {x: {type: boolean, command: {topic: a}}}}
      told: {availability: {topic: t}, properties: {x: {type: boolean, command: {topic: a}}}}
      """
    )
    let announcer = announcer()
    let (quiet, told) = (found[0], found[1])
    let payload = try #require(announcer.messages(for: quiet).first?.payload)
    #expect(payload["availability"] == .array([.object(["topic": "settle/status"])]))
    #expect(announcer.availability(of: quiet, isOnline: true) == nil)
    #expect(announcer.availabilityTopic(in: payload) == nil)

    let other = try #require(announcer.messages(for: told).first?.payload)
    let topic = "settle/status/told"
    #expect(announcer.availabilityTopic(in: other) == topic)
    #expect(
      announcer.availability(of: told, isOnline: true) == .init(topic: topic, payload: "online")
    )
    #expect(
      announcer.availability(of: told, isOnline: false) == .init(topic: topic, payload: "offline")
    )
  }

  @Test func `who made a device is announced, and the identifiers of others`() throws {
    let found = try devices(
      """
      lamp-$n:
        for: [1..2]
        device: {manufacturer: IKEA, model: E27, url: "http://z/$n", identifiers: [z_$n, settle_lamp-2]}
        properties: {x: {type: boolean, command: {topic: a/$n}}}
      """
    )
    let shown = found.map { announcer().messages(for: $0).first?.payload?["dev"] }
    #expect(
      shown.map { $0.map { JSONWriter.text($0) } } == [
        #"{"ids":["settle_lamp-1","z_1","settle_lamp-2"],"name":"lamp-1","mf":"IKEA","mdl":"E27","#
          + #""cu":"http://z/1"}"#,
        #"{"ids":["settle_lamp-2","z_2"],"name":"lamp-2","mf":"IKEA","mdl":"E27","cu":"http://z/2"}"#,
      ]
    )
  }

  /// The members that Home Assistant allows beside the components.
  private static let rootMembers: Set = [
    "dev", "o", "cmps", "availability", "availability_mode", "qos", "encoding", "command_topic",
    "state_topic",
  ]

  @Test func `the message of every profile's device follows its format`() throws {
    for device in try profileDevices() {
      let message = try #require(announcer().messages(for: device).first)
      guard case .object(let root) = message.payload,
        case .object(let components) = message.payload?["cmps"]
      else {
        Issue.record("\(device.id) is no object")
        continue
      }
      #expect(Set(root.map(\.name)).isSubset(of: Self.rootMembers))
      #expect(message.payload?["dev"]?["ids"] != nil && message.payload?["o"]?["name"] != nil)
      let names = message.topic.split(separator: "/") + components.map { Substring($0.name) }
      for name in names { #expect(name.allSatisfy(Self.isPlain), "\(name)") }
      var identifiers: Set<String> = []
      for component in components {
        #expect(component.value["p"]?.string?.isEmpty == false, "\(component.name)")
        let identifier = try #require(component.value["unique_id"]?.string)
        #expect(identifier.allSatisfy(Self.isPlain) && identifiers.insert(identifier).inserted)
        // Whether commands fail shows while the device is away too.
        let isProblem = component.value["device_class"] == "problem"
        #expect(component.value["name"] != nil)
        #expect((component.value["availability"] != nil) == isProblem)
      }
    }
  }

  private static func isPlain(_ character: Character) -> Bool {
    character.isASCII && (character.isLetter || character.isNumber || "_-".contains(character))
  }

  @Test func `a removed entity is named with its platform only`()
    throws
  {
    let device = try #require(
      try devices("d: {properties: {x: {type: boolean, command: {topic: a}}}}").first
    )
    let earlier = ["x": "switch", "gone": "number", "away": "text"]
    let message = try #require(announcer().messages(for: device, replacing: earlier).first)
    #expect(DiscoveryAnnouncer.entities(in: message.payload) == earlier)
    #expect(message.payload?["cmps"]?["gone"] == .object(["p": "number"]))
    #expect(message.payload?["cmps"]?["away"] == .object(["p": "text"]))
    #expect(message.payload?["cmps"]?["x"]?["command_topic"] == "settle/d/x/set")
    #expect(DiscoveryAnnouncer.entities(in: nil) == [:])
  }

  @Test func `an entity with another platform is removed from the old one first`() throws {
    let device = try #require(
      try devices("d: {properties: {x: {type: boolean, command: {topic: a}}}}").first
    )
    let messages = announcer().messages(for: device, replacing: ["x": "light", "gone": "number"])

    #expect(messages.map(\.topic) == Array(repeating: "homeassistant/device/d/config", count: 2))
    #expect(
      messages.first?.payload?["cmps"]
        == .object(["gone": .object(["p": "number"]), "x": .object(["p": "light"])])
    )
    #expect(
      DiscoveryAnnouncer.entities(in: messages.last?.payload) == ["gone": "number", "x": "switch"]
    )
  }

  @Test func `with the component format each entity has its own message`() throws {
    let device = try #require(
      try devices(
        profile("zigbee2mqtt/light", "  name: Lamp\n  properties:\n    color: none\n")
          + "    style: {type: choice, values: [a, b], command: {topic: x, payload: $value}}\n"
      ).first
    )

    var messages = announcer(.component).messages(for: device)

    #expect(
      messages.map(\.topic) == [
        "homeassistant/light/lamp/power/config", "homeassistant/select/lamp/style/config",
        "homeassistant/binary_sensor/lamp/problem/config",
      ]
    )
    let problem = messages.removeLast().payload
    #expect(problem?["availability"] == .array([.object(["topic": "settle/status"])]))
    #expect(problem?["state_topic"] == "settle/status/lamp/problem")
    #expect(problem?["json_attributes_topic"] == "settle/status/lamp/problem")
    #expect(problem?["unique_id"] == "settle_lamp_problem")
    for message in messages {
      #expect(message.payload?["p"] == nil)
      #expect(message.payload?["dev"]?["name"] == "Lamp")
      #expect(message.payload?["o"]?["name"] == "Settle")
      #expect(message.payload?["availability_mode"] == "all")
      #expect(message.payload?["optimistic"] == false)
    }
    #expect(messages.first?.payload?["color_mode"] == true)
    #expect(messages.last?.payload?["color_mode"] == nil)
    #expect(messages.last?.payload?["name"] == "Style")
  }

  // MARK: - Own announcements

  @Test func `own announcements are recognized by their base topic`() throws {
    let device = try #require(
      try devices(
        "d:\n  properties:\n    x: {type: boolean, command: {topic: a, payload: $value}}\n"
      )
      .first
    )
    for format in [DiscoveryConfiguration.Format.device, .component] {
      let payload = try #require(announcer(format).messages(for: device).first?.payload)
      #expect(announcer().isOwn(payload))
      #expect(!announcer(base: "other").isOwn(payload))
    }
    let others: JSONValue = .object([
      "o": .object(["name": "zigbee2mqtt"]), "availability": .array([]),
    ])
    #expect(!announcer().isOwn(others))
    #expect(!announcer().isOwn("Settle"))
  }

  @Test func `only topics below the prefix match`() {
    for (topic, expected) in [
      ("homeassistant/status", true), ("homeassistant", false), ("homeassistants/x", false),
      ("home/x", false), ("homeassistant/", true),
    ] {
      #expect(announcer().matchesPrefix(Array(topic.utf8).span) == expected, "\(topic)")
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
import JSON
import Testing

/// Devices that one entry of a device file describes.
struct TemplateTests {
  private func loaded(_ text: String, settings: String? = nil) throws -> LoadedConfiguration {
    let (outcome, folder) = try Loading.run(settings: settings, devices: ["d.yaml": text])
    switch outcome {
    case .loaded(let configuration): return configuration
    case .refused(let problems):
      try #require(problems.isEmpty, "\(Loading.lines(problems, in: folder))")
      throw CancellationError()
    }
  }

  @Test(arguments: try Mistake.all(in: "template-mistakes.txt"))
  func `a mistake in a template is reported with its position`(mistake: Mistake) throws {
    #expect(try Loading.mistakes(inDevices: mistake.text) == mistake.lines)
  }

  private static let relays = """
    relay-$n:
      for: [1..3, 007, annex]
      name: Relay $n
      topic: relays/$n
      properties:
        power:
          type: boolean
          command: {topic: $topic/set, payload: {channel: $n, name: "ch$n-x", to: $value}}
          state: {topic: $topic/state, value: /relay-$n/state, get: {topic: ask/$n, payload: {id: $n}}}
      availability: {topic: $topic/$name, online: up-$n}
    """

  @Test func `numbers, ranges and words each make a device`() throws {
    let text = Self.relays.replacing("$topic/$name", with: "$topic/alive")
    let registry = try loaded(text).registry
    #expect(
      registry.devices.map(\.id) == ["relay-1", "relay-2", "relay-3", "relay-007", "relay-annex"]
    )
    #expect(registry.devices.map(\.name).prefix(2) == ["Relay 1", "Relay 2"])
    let power = registry[try registry.index(of: "relay-2/power")].property
    #expect(power.command.topic == "relays/2/set")
    #expect(power.state?.topic == "relays/2/state")
    #expect(power.state?.value == JSONPointer("/relay-2/state"))
    #expect(power.state?.get?.topic == "ask/2")
    #expect(power.state?.get?.payload == Array(#"{"id":2}"#.utf8))
    #expect(registry.devices[1].availability.map(\.topic) == ["relays/2/alive"])
    #expect(registry.devices[1].availability.map(\.online) == ["up-2"])
  }

  @Test(arguments: [
    ("relay-2", #"{"channel":2,"name":"ch2-x","to":true}"#),
    ("relay-007", #"{"channel":"007","name":"ch007-x","to":true}"#),
    ("relay-annex", #"{"channel":"annex","name":"channex-x","to":true}"#),
  ])
  func `a placeholder that is all of a string keeps the type of its item`(
    device: String,
    payload: String
  ) throws {
    let text = Self.relays.replacing("$topic/$name", with: "$topic/alive")
    let registry = try loaded(text).registry
    let power = registry[try registry.index(of: "\(device)/power")].property
    var bytes: [UInt8] = []
    power.command.payload.render(.boolean(true), into: &bytes)
    #expect(String(decoding: bytes, as: UTF8.self) == payload)
  }

  @Test func `a longer name is no placeholder`() throws {
    #expect(
      try Loading.mistakes(inDevices: Self.relays) == [
        "d.yaml:10:25: '$name' has no meaning here; known: $topic, $root, $value"
      ]
    )
  }

  @Test func `a padded range keeps its zeros`() throws {
    let text = "l-$n: {for: 08..10, profile: wled/light, topic: w/$n}"
    #expect(try loaded(text).registry.devices.map(\.id) == ["l-08", "l-09", "l-10"])
  }

  @Test func `a profile gets the placeholder through the topic and its parameters`() throws {
    let text = "l-$n: {for: [1, 2], profile: wled/light, topic: wled/l$n}"
    let registry = try loaded(text).registry
    let topics = registry.devices.flatMap { $0.properties.map(\.command.topic) }
    #expect(topics.contains("wled/l1/api") && topics.contains("wled/l2/api"))
    #expect(!topics.contains { $0.contains("$") })
  }

  @Test func `a mistake in a template is reported once, with its other mistakes`() throws {
    let text = """
      l-$n:
        for: [5..1]
        lane: zig
        properties:
          p: {type: bolean, command: {topic: t/$n}}
      """
    #expect(try Loading.mistakes(inDevices: text).count == 2)
    #expect(
      try Loading.mistakes(
        inDevices: text,
        settings: "lanes: {zigbee: {rate: 1/s}}\ndevices: ../devices"
      ).count == 3
    )
  }

  @Test func `the limit of devices counts those of all files`() throws {
    let settings = "limits: {devices: 3}\ndevices: ../devices"
    let text =
      "a: {profile: wled/light, topic: a}\nl-$n: {for: [1..3], profile: wled/light, topic: w/$n}"
    #expect(
      try Loading.mistakes(inDevices: text, settings: settings) == [
        "d.yaml:2:1: more devices than limits.devices allows: 3 of this one, 1 before it, 3 allowed"
      ]
    )
  }

  @Test func `a topic fills in the device that it names`() throws {
    let text = """
      node-$1-$2:
        from: fleet/+/+/status
        topic: fleet/$1/$2
        properties:
          power: {type: boolean, command: {topic: $topic/set}, state: {topic: $topic/status}}
      """
    let configuration = try loaded(text)
    #expect(configuration.registry.devices.isEmpty)
    #expect(configuration.warnings.isEmpty)
    let source = try #require(configuration.sources.first)
    let fillings = try #require(source.fillings(from: "fleet/north/7/status"))
    let device = source.template.device(fillings)
    #expect(device.id == "node-north-7")
    #expect(device.properties[0].command.topic == "fleet/north/7/set")
    #expect(source.fillings(from: "fleet/north/status") == nil)
    #expect(source.problem(with: fillings) == nil)
    let upper = try #require(source.fillings(from: "fleet/North/7/status"))
    #expect(source.problem(with: upper)?.hasPrefix("'node-North-7' is not a device") == true)
    let empty = try #require(source.fillings(from: "fleet//7/status"))
    #expect(source.problem(with: empty) == "a level of the topic is empty")
  }
}

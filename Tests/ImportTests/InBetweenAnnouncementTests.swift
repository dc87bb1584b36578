// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Devices
@testable import Import
import JSON
import LastOut
import Routing
import Testing

/// What Home Assistant sees of Zigbee2MQTT 2.12 with Settle in between, and without.
struct InBetweenAnnouncementTests {
  private static let base = "zigbee2mqtt"
  private static let inner = "zigbee2mqtt-direct"

  /// The announcements of `zigbee2mqtt-discovery.txt`: devices, groups, scenes, the bridge.
  private static func announcements() throws -> [(topic: String, payload: String)] {
    try Fixture.text("zigbee2mqtt-discovery.txt").split(separator: "\n").map { line in
      let topic = line.prefix { $0 != " " }
      return (String(topic), String(line.dropFirst(topic.count + 1)))
    }
  }

  private static func encoded(_ base: String) -> String {
    base.utf16.map { String($0) }.joined()
  }

  /// A text as Zigbee2MQTT has it at its other base topic.
  private static func moved(_ text: String) -> String {
    text.replacing("\(base)/", with: "\(inner)/").replacing("_\(base)\"", with: "_\(inner)\"")
      .replacing("/\(encoded(base))_", with: "/\(encoded(inner))_")
      .replacing("zigbee2mqtt_\(encoded(base))_", with: "zigbee2mqtt_\(encoded(inner))_")
  }

  /// The machine with the routes that the import writes.
  private static func machine() throws -> RouteMachine {
    let models = Announcement(
      topic: "\(base)/bridge/devices",
      text: try Fixture.text("zigbee2mqtt-models.json")
    )
    let routes = try #require(
      InBetween([models], base: base, inner: inner, prefix: "homeassistant")
    )
    var overrides = ConfigurationLoader.Overrides()
    overrides.config = "settle.yaml"
    let settings = ConfigurationLoader.inspect(
      overrides,
      environment: [:],
      drafts: ["settle.yaml": Array(routes.section.utf8)]
    ).0.gateway
    #expect(!settings.routes.isEmpty)
    return RouteMachine(settings.routes, brokers: [], ttl: .seconds(60), limit: 10_000)
  }

  @Test func `Home Assistant finds the same entities, and hears when nobody carries commands`()
    throws
  {
    var machine = try Self.machine()
    let now = Moment(nanoseconds: 1)
    for (topic, payload) in try Self.announcements() {
      let announced = "\(Self.inner)-discovery" + Self.moved(topic).dropFirst("homeassistant".count)
      let bytes = Array(Self.moved(payload).utf8)
      let outputs = machine.outputs(fedBy: announced.utf8.span, broker: 0)
      _ = machine.receive(
        bytes.span,
        document: try? JSONParser.parse(bytes.span),
        for: try #require(outputs),
        retained: false,
        trail: "",
        at: now
      )
      let published = machine.nextPublish(for: 0, at: now)
      let carried = try #require(published)
      machine.finish(carried.number, .acknowledged)
      #expect(carried.topic == topic)
      let before = try JSONParser.parse(payload)
      let after = try JSONParser.parse(carried.payload.span)
      for name in ["unique_id", "device", "group", "name", "origin", "object_id"] {
        #expect(after[name] == before[name], "\(name) of \(topic)")
      }
      for member in before.members ?? []
      where member.name == "command_topic" || member.name.hasSuffix("_command_topic")
        || member.name == "set_position_topic"
      {
        #expect(after[member.name] == member.value, "\(member.name) of \(topic)")
      }
      guard let sources = before["availability"]?.elements else { continue }
      let topics = after["availability"]?.elements?.compactMap { $0["topic"]?.string }
      let others = sources.compactMap { $0["topic"]?.string.map { Self.moved($0) } }
      #expect(topics == others + ["zigbee2mqtt/bridge/state"])
      #expect(after["availability_mode"] == "all")
    }
  }
}

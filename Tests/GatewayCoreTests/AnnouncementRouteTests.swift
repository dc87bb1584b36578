// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import LastOut
@testable import Routing
import Testing

/// Routes that carry announcements to Home Assistant, and lead their commands through other routes.
@Suite struct AnnouncementRouteTests {
  private static func route(_ from: String, _ to: String) -> RouteConfiguration {
    RouteConfiguration(from: .init(topic: from), to: .init(topic: to), policy: nil)
  }

  private static let routes: [RouteConfiguration] = {
    var carried = route("direct-discovery/#", "homeassistant/#")
    carried.announces = true
    return [
      route("z/+/set", "direct/+/set"), route("z/+/set/+", "direct/+/set/+"),
      route("z/bridge/request/#", "direct/bridge/request/#"), route("direct/+", "z/+"), carried,
    ]
  }()

  private func carry(
    _ payload: String,
    on topic: String = "direct-discovery/light/0x1/light/config",
    retained: Bool = false
  ) throws -> (message: RouteMachine.Publish, verdict: RouteMachine.Verdict) {
    var machine = RouteMachine(Self.routes, brokers: [], ttl: .seconds(60), limit: 100)
    let now = Moment(nanoseconds: 1)
    let bytes = Array(payload.utf8)
    let name = Array(topic.utf8)
    let outputs = machine.outputs(fedBy: name.span, broker: 0)
    let keys = try #require(outputs)
    let readsDocuments = machine.needsDocument(keys)
    #expect(readsDocuments)
    let verdict = machine.receive(
      bytes.span,
      document: try? JSONParser.parse(bytes.span),
      for: keys,
      retained: retained,
      trail: "",
      at: now
    )
    let publish = machine.nextPublish(for: 0, at: now)
    return (try #require(publish), verdict)
  }

  private static let announcements: [(String, String)] = [
    // Commands take the routes; states, availability and everything else stay as they are.
    (
      #"{"command_topic":"direct/lamp/set","state_topic":"direct/lamp","unique_id":"0x1_light_direct","#
        + #""availability":[{"topic":"direct/bridge/state"}],"device":{"identifiers":["zigbee2mqtt_0x1"]}}"#,
      #"{"command_topic":"z/lamp/set","state_topic":"direct/lamp","unique_id":"0x1_light_direct","#
        + #""availability":[{"topic":"direct/bridge/state"}],"device":{"identifiers":["zigbee2mqtt_0x1"]}}"#
    ),
    (
      #"{"temperature_command_topic":"direct/valve/set/setpoint","set_position_topic":"direct/blind/set"}"#,
      #"{"temperature_command_topic":"z/valve/set/setpoint","set_position_topic":"z/blind/set"}"#
    ),
    (
      #"{"~":"direct/lamp","cmd_t":"~/set","bri_cmd_t":"~/set/brightness","stat_t":"~"}"#,
      #"{"~":"direct/lamp","cmd_t":"z/lamp/set","bri_cmd_t":"z/lamp/set/brightness","stat_t":"~"}"#
    ),
    (
      #"{"~":"direct","cmps":{"a":{"p":"light","cmd_t":"~/a/set"},"b":{"~":"direct/b","cmd_t":"~/set"},"c":1}}"#,
      #"{"~":"direct","cmps":{"a":{"p":"light","cmd_t":"z/a/set"},"b":{"~":"direct/b","cmd_t":"z/b/set"},"c":1}}"#
    ),
    (
      #"{"command_topic":"direct/bridge/request/permit_join"}"#,
      #"{"command_topic":"z/bridge/request/permit_join"}"#
    ),
    // No route leads there.
    (#"{"command_topic":"other/lamp/set"}"#, #"{"command_topic":"other/lamp/set"}"#),
    (#"{ "command_topic" : "direct/+/set" }"#, #"{ "command_topic" : "direct/+/set" }"#),
    (#"{"command_topic":7}"#, #"{"command_topic":7}"#),
  ]

  @Test(arguments: announcements)
  func `only command topics change, to the input of their route`(
    _ payload: String,
    _ expected: String
  ) throws {
    let (message, verdict) = try carry(payload)
    #expect(message.topic == "homeassistant/light/0x1/light/config")
    #expect(String(decoding: message.payload, as: UTF8.self) == expected)
    #expect(message.retain)
    #expect(verdict == .accepted)
  }

  @Test(arguments: ["", "online"])
  func `a removal and other messages pass unchanged`(_ payload: String) throws {
    let topic = payload.isEmpty ? "light/0x1/light/config" : "status"
    let (message, verdict) = try carry(payload, on: "direct-discovery/\(topic)")
    #expect(message.topic == "homeassistant/\(topic)")
    #expect(String(decoding: message.payload, as: UTF8.self) == payload)
    #expect(message.retain)
    #expect(verdict == .accepted)
  }

  @Test(arguments: ["{", "[]", "7", "\"a\"", #"{"command_topic":"direct/lamp/set""#])
  func `a broken announcement passes unchanged, with a diagnostic`(_ payload: String) throws {
    let (message, verdict) = try carry(payload)
    #expect(String(decoding: message.payload, as: UTF8.self) == payload)
    #expect(verdict == .acceptedUnread)
  }
}

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
    var bridge = route("direct/bridge/state", "z/bridge/state")
    bridge.will = #"{"state":"offline"}"#
    return [
      route("z/+/set", "direct/+/set"), route("z/+/set/+", "direct/+/set/+"),
      route("z/bridge/request/#", "direct/bridge/request/#"), route("direct/+", "z/+"), bridge,
      carried,
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

  private static let joined =
    #"{"topic":"z/bridge/state","value_template":"{{ value_json.state if value_json is defined else "#
    + #"value }}"}"#
  private static let alone = #""availability":["# + joined + #"],"availability_mode":"all""#

  private static let announcements: [(String, String)] = [
    // Commands take the routes, and the gateway's end makes them unavailable; states stay.
    (
      #"{"command_topic":"direct/lamp/set","state_topic":"direct/lamp","unique_id":"0x1_light_direct","#
        + #""availability":[{"topic":"direct/bridge/state"}],"device":{"identifiers":["zigbee2mqtt_0x1"]}}"#,
      #"{"command_topic":"z/lamp/set","state_topic":"direct/lamp","unique_id":"0x1_light_z","#
        + #""device":{"identifiers":["zigbee2mqtt_0x1"]},"availability":[{"topic":"direct/bridge/state"},"#
        + joined + #"],"availability_mode":"all"}"#
    ),
    // Identifiers are what they were before the base topic changed; 100105114101… is `direct`.
    (
      #"{"uniq_id":"9_light_direct","group":["0x1_light_direct","other"],"#
        + #""dev":{"ids":"zigbee2mqtt_10010511410199116_9","via_device":"zigbee2mqtt_bridge_0x0"}}"#,
      #"{"uniq_id":"9_light_z","group":["0x1_light_z","other"],"#
        + #""dev":{"ids":"zigbee2mqtt_122_9","via_device":"zigbee2mqtt_bridge_0x0"}}"#
    ),
    // Without the gateway commands are lost, whatever else the availability says.
    (
      #"{"command_topic":"direct/a/set","avty_t":"direct/a/availability","pl_avail":"yes"}"#,
      #"{"command_topic":"z/a/set","availability":[{"topic":"direct/a/availability","#
        + #""payload_available":"yes"},"# + joined + #"],"availability_mode":"all"}"#
    ),
    (
      #"{"~":"direct","avty":{"t":"~/bridge/state"},"cmps":{"a":{"p":"light","cmd_t":"~/a/set"}}}"#,
      #"{"~":"direct","cmps":{"a":{"p":"light","cmd_t":"z/a/set"}},"availability":["#
        + #"{"t":"~/bridge/state"},"# + joined + #"],"availability_mode":"all"}"#
    ),
    (
      #"{"temperature_command_topic":"direct/valve/set/setpoint","set_position_topic":"direct/blind/set"}"#,
      #"{"temperature_command_topic":"z/valve/set/setpoint","set_position_topic":"z/blind/set","#
        + alone + "}"
    ),
    (
      #"{"~":"direct/lamp","cmd_t":"~/set","bri_cmd_t":"~/set/brightness","stat_t":"~"}"#,
      #"{"~":"direct/lamp","cmd_t":"z/lamp/set","bri_cmd_t":"z/lamp/set/brightness","stat_t":"~","#
        + alone + "}"
    ),
    (
      #"{"~":"direct","cmps":{"a":{"p":"light","cmd_t":"~/a/set"},"b":{"~":"direct/b","cmd_t":"~/set"},"c":1}}"#,
      #"{"~":"direct","cmps":{"a":{"p":"light","cmd_t":"z/a/set","# + alone
        + #"},"b":{"~":"direct/b","cmd_t":"z/b/set","# + alone + #"},"c":1}}"#
    ),
    (
      #"{"command_topic":"direct/bridge/request/permit_join"}"#,
      #"{"command_topic":"z/bridge/request/permit_join","# + alone + "}"
    ),
    // No route leads there.
    (#"{"command_topic":"other/lamp/set"}"#, #"{"command_topic":"other/lamp/set"}"#),
    (#"{ "command_topic" : "direct/+/set" }"#, #"{ "command_topic" : "direct/+/set" }"#),
    (#"{"command_topic":7}"#, #"{"command_topic":7}"#),
  ]

  @Test(arguments: announcements)
  func `commands lead to the input of their route, and identifiers stay what they were`(
    _ payload: String,
    _ expected: String
  ) throws {
    let (message, verdict) = try carry(payload)
    #expect(message.topic == "homeassistant/light/0x1/light/config")
    #expect(String(decoding: message.payload, as: UTF8.self) == expected)
    #expect(message.retain)
    #expect(verdict == .accepted)
  }

  @Test func `a group is announced on the topic that it had`() throws {
    let topic = "direct-discovery/light/10010511410199116_9/light/config"
    #expect(try carry("{}", on: topic).message.topic == "homeassistant/light/122_9/light/config")
    #expect(try carry("", on: topic).message.topic == "homeassistant/light/122_9/light/config")
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

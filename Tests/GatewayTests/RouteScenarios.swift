// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import LastOut
import Operations
import TestBroker
import Testing

/// 6 and 7: routes and inputs.
@Suite(.blocking) struct RouteScenarios {
  private func bench(_ routes: String, devices: String = DeviceText.lamp()) throws -> Bench {
    try Bench.running(devices: devices, settings: "routes:\n" + routes)
  }

  @Test func `wildcards are carried over, each topic settles for itself`() throws {
    let bench = try bench(
      #"  - {from: "slow/+/in/#", to: "fast/+/out/#", policy: {delay: 1s, max_wait: none}}"#
    )
    let witness = try bench.witness()

    for number in 1...5 {
      witness.publish("slow/a/in/x/y", "a\(number)")
      witness.publish("slow/b/in/z", [0, 0xFF, UInt8(number)])
    }

    #expect(witness.waitFor("fast/a/out/x/y", "a5"))
    #expect(witness.waitFor { $0.contains { $0.topic == "fast/b/out/z" } })
    #expect(witness.texts(on: "fast/a/out/x/y") == ["a5"])
    #expect(
      witness.messages.filter { $0.topic == "fast/b/out/z" }.map(\.payload) == [[0, 0xFF, 5]]
    )
  }

  @Test func `merge json keeps the newest of each member`() throws {
    let bench = try bench(
      #"  - {from: "in/+", to: "out/+", merge: json, policy: {delay: 1s, max_wait: none}}"#
    )
    let witness = try bench.witness()

    witness.publish("in/lamp", #"{"brightness":1,"state":"ON"}"#)
    witness.publish("in/lamp", #"{"brightness":2}"#)
    witness.publish("in/lamp", #"{"color_temp":3,"brightness":4}"#)

    #expect(
      witness.texts(on: "out/lamp", count: 1) == [#"{"brightness":4,"state":"ON","color_temp":3}"#]
    )
  }

  @Test func `a member's older value does not follow the off of its group`() throws {
    let bench = try Bench(
      devices: DeviceText.lamp(),
      settings: """
        routes:
          - {from: "z2m/+/set", to: "direct/+/set", merge: json, word_delay: 20ms, policy: {delay: 1s}}
          - {from: "direct/bridge/devices", to: "z2m/bridge/devices", policy: none}
        """
    )
    try bench.broker.start()
    let witness = try bench.witness()
    // Larger than other messages may be.
    let exposes = String(repeating: " ", count: 100_000)
    let devices = #"[{"definition":"\#(exposes)","friendly_name":"l1","ieee_address":"0x1"}]"#
    witness.publish("direct/bridge/devices", devices, retain: true)
    witness.publish(
      "direct/bridge/groups",
      #"[{"id":1,"friendly_name":"all","members":[{"ieee_address":"0x1","endpoint":1}]}]"#,
      retain: true
    )
    try bench.startGateway()
    #expect(witness.waitFor { $0.contains { $0.topic == "z2m/bridge/devices" } })
    // The groups come with the devices.
    try #require(witness.switchesTheLampOn())

    witness.publish("z2m/l1/set", #"{"brightness":200}"#)
    witness.publish("z2m/all/set", #"{"state":"OFF"}"#)
    witness.publish("z2m/l2/set", #"{"brightness":7}"#)

    // What settles last proves that nothing else came.
    #expect(witness.waitFor("direct/l2/set", #"{"brightness":7}"#))
    #expect(witness.texts(on: "direct/all/set") == [#"{"state":"OFF"}"#])
    #expect(witness.texts(on: "direct/l1/set").isEmpty)
  }

  @Test func `a large message is forwarded by a route without a policy, and by no other`() throws {
    let bench = try Bench(
      devices: DeviceText.lamp(),
      settings: """
        limits: {announcement: 300KiB}
        routes:
          - {from: "in/#", to: "out/#", policy: none}
          - {from: "slow/#", to: "fast/#", policy: {delay: 10ms}}
        """
    )
    try bench.broker.start()
    try bench.startGateway()
    let witness = try bench.witness()
    let large = [UInt8](repeating: 0x41, count: 300 << 10)
    witness.publish("in/devices", large, retain: true)
    witness.publish("in/devices", large + [0x42])
    witness.publish("slow/devices", large)
    witness.publish("in/end", "end")
    #expect(witness.waitFor("out/end", "end"))
    let out = witness.messages.filter { $0.topic == "out/devices" || $0.topic == "fast/devices" }
    #expect(out.map(\.payload.count) == [300 << 10])
  }

  @Test func `a payload in pass is sent at once, after the pending value`() throws {
    let bench = try bench(
      """
        - {from: "in/+", to: "out/+", pass: [STOP, /brightness_step], policy: {delay: 60s, \
      max_wait: none}}
      """
    )
    let witness = try bench.witness()

    witness.publish("in/blind", "40")
    witness.publish("in/blind", "50")
    witness.publish("in/blind", "STOP")
    #expect(witness.texts(on: "out/blind", count: 2) == ["50", "STOP"])
    witness.publish("in/lamp", #"{"brightness":9}"#)
    for _ in 0..<3 { witness.publish("in/lamp", #"{"brightness_step":1}"#) }
    #expect(
      witness.texts(on: "out/lamp", count: 4)
        == [#"{"brightness":9}"#] + Array(repeating: #"{"brightness_step":1}"#, count: 3)
    )
  }

  @Test func `a route without a policy forwards everything, retain kept`() throws {
    let bench = try Bench(
      devices: DeviceText.lamp(),
      settings: """
        routes:
          - {from: "in/#", to: "out/#", policy: none}
        """
    )
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish("in/old", "kept", retain: true)
    try bench.startGateway()
    #expect(witness.waitFor("out/old", "kept"))

    for number in 1...50 { witness.publish("in/a", "\(number)") }
    witness.publish("in/b", "stay", retain: true)

    #expect(witness.texts(on: "out/a", count: 50) == (1...50).map { "\($0)" })
    #expect(witness.waitFor("out/b", "stay"))
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["out/#"])
    #expect(late.waitFor { $0.contains { $0.topic == "out/b" && $0.retained } })
    #expect(late.waitFor { $0.contains { $0.topic == "out/old" && $0.retained } })
    #expect(!late.messages.contains { $0.topic == "out/a" })
  }

  @Test func `routes that overlap forward each message once each`() throws {
    let bench = try bench(
      """
        - {from: "in/#", to: "all/#", policy: none}
        - {from: "in/+/set", to: "sets/+", policy: none}
        - {from: "in/lamp/set", to: "lamp", policy: none}
      """
    )
    let witness = try bench.witness()

    witness.publish("in/lamp/set", "1")
    // Order is kept per topic: whatever else the first one caused comes before this.
    witness.publish("in/lamp/set", "2")

    for topic in ["all/lamp/set", "sets/lamp", "lamp"] {
      #expect(witness.waitFor(topic, "2"))
      #expect(witness.texts(on: topic) == ["1", "2"])
    }
  }

  @Test func `a retained message on a debounced route does not replay`() throws {
    let bench = try Bench(
      devices: DeviceText.lamp(),
      settings: #"routes: [{from: "in/+", to: "out/+", policy: {delay: 20ms}}]"#
    )
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish("in/old", "stale", retain: true)
    try bench.startGateway()

    witness.publish("in/new", "fresh")

    #expect(witness.waitFor("out/new", "fresh"))
    #expect(witness.texts(on: "out/old").isEmpty)
  }

  @Test func `pending routes are flushed at shutdown`() throws {
    let bench = try bench(
      #"  - {from: "in/+", to: "out/+", policy: {delay: 60s, max_wait: none}}"#
    )
    let witness = try bench.witness()
    for number in 0..<20 { witness.publish("in/\(number)", "v\(number)") }
    // Routed messages are seen by nobody before they leave: one that came later proves the rest.
    try #require(witness.switchesTheLampOn())

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 0)
    #expect(gateway.lines(containing: "20 sent").count == 1)
    for number in 0..<20 { #expect(witness.waitFor("out/\(number)", "v\(number)")) }
  }

  @Test func `two brokers are bridged, and messages for an offline one are reported`() throws {
    let cloud = try TestBroker()
    try cloud.start()
    let bench = try Bench.running(
      devices: DeviceText.lamp(),
      settings: """
        brokers: {cloud: {url: "mqtt://127.0.0.1:\(cloud.port)"}}
        shutdown: {timeout: 2s}
        routes:
          - {from: "up/#", to: {broker: cloud, topic: "home/#"}, policy: {delay: 50ms}}
          - {from: {broker: cloud, topic: "cmd/#"}, to: "local/#", policy: {delay: 50ms}}
        """
    )
    let witness = try bench.witness()
    let far = try RecordingSubscriber(port: cloud.port)

    for number in 1...3 { witness.publish("up/t", "\(number)") }
    #expect(far.waitFor("home/t", "3"))
    #expect(far.texts(on: "home/t").last == "3")
    // The first command may come before the gateway has subscribed there.
    #expect(bench.repeating(far, "cmd/x", "1") { witness.waitFor("local/x", "1", within: $0) })

    cloud.stop(signal: SIGKILL)
    #expect(try bench.running().waitForLine(containing: "No connection") != nil)
    witness.publish("up/t", "4")
    try #require(witness.switchesTheLampOn())
    try bench.running().signal(SIGTERM)
    #expect(try bench.running().waitForExit() == 1)
    #expect(try bench.running().lines(containing: "1 not sent: home/t").count == 1)
  }

  @Test func `a loop through a second broker is dropped and counted`() throws {
    let cloud = try TestBroker()
    try cloud.start()
    let bench = try Bench.running(
      devices: DeviceText.lamp(),
      settings: """
        brokers: {cloud: {url: "mqtt://127.0.0.1:\(cloud.port)"}}
        routes:
          - {from: "a/in", to: {broker: cloud, topic: "b/out"}, policy: {delay: 20ms}}
        """
    )
    let witness = try bench.witness()
    let far = try RecordingSubscriber(port: cloud.port, filters: ["b/#"])
    #expect(bench.repeating(witness, "a/in", "1") { far.waitFor("b/out", "1", within: $0) })

    // Somebody else carries it back, with its properties, as a bridge does.
    let marked = try #require(far.messages.last)
    #expect(!marked.userProperties.isEmpty)
    witness.publish("a/in", marked.payload, userProperties: marked.userProperties)

    let line = try bench.running().waitForLine(containing: "message of our own")
    #expect(line?.contains("a/in") == true)
  }

  // MARK: - Inputs

  @Test func `a knob's events become steps and toggles`() throws {
    let bench = try Bench.running(
      devices: DeviceText.lamp(),
      settings: """
        inputs:
          - topic: zigbee2mqtt/knob
            value: /action
            map:
              brightness_step_up: {key: desk-lamp/brightness, step: 10}
              brightness_step_down: {key: desk-lamp/brightness, step: -10}
              toggle: {key: desk-lamp/power, toggle: true}
              scene_1: {key: desk-lamp/brightness, set: 200}
          - {topic: "wall/+/button", map: {on: {key: desk-lamp/power, set: true}}}
        routes: [{from: "zigbee2mqtt/#", to: "copy/#", policy: {delay: 50ms}}]
        """
    )
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"OFF","brightness":100}"#)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "100"))

    for _ in 0..<3 { witness.publish("zigbee2mqtt/knob", #"{"action":"brightness_step_up"}"#) }
    witness.publish("zigbee2mqtt/knob", #"{"action":"brightness_step_down"}"#)
    witness.publish("zigbee2mqtt/knob", #"{"action":"unknown"}"#)
    witness.publish("zigbee2mqtt/knob", #"{"battery":99}"#)
    witness.publish("zigbee2mqtt/knob", "{")
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":120}"#))

    // Although a route takes the same messages, each event counts once. The lamp has the
    // brightness, and stays off.
    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"OFF","brightness":120}"#)
    #expect(
      witness.waitFor { messages in
        messages.contains {
          $0.topic == "settle/desk-lamp/brightness/event" && $0.text.contains("confirmed")
        }
      }
    )
    witness.publish("zigbee2mqtt/knob", #"{"action":"toggle"}"#)
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"state":"ON"}"#))
    witness.publish("zigbee2mqtt/desk_lamp", #"{"state":"OFF","brightness":120}"#)
    #expect(witness.waitFor("settle/desk-lamp/power", "false"))
    witness.publish("wall/left/button", "on")
    #expect(
      witness.waitFor { messages in
        messages.count { $0.text == #"{"state":"ON"}"# } >= 2
      }
    )
    witness.publish("zigbee2mqtt/knob", #"{"action":"scene_1"}"#)
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/set", #"{"brightness":200}"#))
  }

  @Test func `a retained event of a knob is not acted on`() throws {
    let bench = try Bench(
      devices: DeviceText.lamp(),
      settings: """
        inputs: [{topic: knob, map: {toggle: {key: desk-lamp/power, set: true}}}]
        """
    )
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish("knob", "toggle", retain: true)
    try bench.startGateway()

    witness.publish("settle/desk-lamp/brightness/set", "5")

    #expect(witness.texts(on: "zigbee2mqtt/desk_lamp/set", count: 1) == [#"{"brightness":5}"#])
  }
}

extension Bench {
  /// Publishes again until it has had its effect: for what may come before a subscription.
  func repeating(
    _ publisher: RecordingSubscriber,
    _ topic: String,
    _ text: String,
    until effect: (Duration) -> Bool
  ) -> Bool {
    var wait = Wait()
    while wait.remaining() != nil {
      publisher.publish(topic, text)
      if effect(.milliseconds(200)) { return true }
    }
    return false
  }
}

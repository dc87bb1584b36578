// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Routes that form a loop, and bad input to routes.
@Suite(.blocking) struct RouteFaultScenarios {
  private static let route = #"{from: "in/#", to: "out/#", policy: {delay: 20ms, max_wait: none}}"#

  private func bench(_ routes: String, more: String = "") throws -> Bench {
    let bench = try Bench(
      devices: DeviceText.lamp(),
      settings: "routes: [\(routes)]\n\(more)",
      options: .roomy
    )
    try bench.broker.start()
    try bench.startGateway()
    return bench
  }

  /// One that would hear itself.
  @Test(arguments: [
    #"{from: "a/#", to: "a/x/#"}"#, #"{from: "a/+", to: "a/fixed"}"#,
    #"{from: "a", to: "b"}, {from: "b", to: "c"}, {from: "c", to: "a"}"#,
  ])
  func `routes that feed each other are refused at the start`(routes: String) throws {
    let bench = try Bench(devices: DeviceText.lamp(), settings: "routes: [\(routes)]")
    let gateway = try GatewayProcess(
      configuration: bench.folder + "/settle.yaml",
      socketPath: bench.socketPath
    )

    #expect(gateway.waitForExit() == 78)
    #expect(gateway.log().contains("settle.yaml:"))
    #expect(gateway.log().contains("which would loop"))
  }

  /// Neither gateway's file shows the circle that the two of them make.
  @Test func `a message that returns through another gateway is stopped`() throws {
    let bench = try bench(#"{from: "a/+", to: "b/+", policy: {delay: 10ms}}"#)
    let witness = try bench.witness()
    let file = bench.folder + "/second.yaml"
    try TextFile.write(
      """
      mqtt: {url: "mqtt://127.0.0.1:\(bench.broker.port)", base_topic: other}
      socket: \(bench.folder)/second.sock
      devices: devices
      routes: [{from: "b/+", to: "a/+", policy: {delay: 10ms}}]
      """,
      to: file
    )
    let second = try GatewayProcess(
      configuration: file,
      socketPath: bench.folder + "/second.sock"
    )
    #expect(witness.waitFor("other/status", "online"))

    witness.publish("a/x", "1")

    let first = try bench.running()
    let line = first.waitForLine(containing: "message of our own")
    #expect(line?.contains("a/x") == true)
    // Another value, and another topic, still get through, once round.
    witness.publish("a/x", "2")
    witness.publish("a/y", "3")
    #expect(witness.waitFor { $0.count { $0.topic == "a/x" && $0.text == "2" } >= 2 })
    #expect(witness.waitFor { $0.count { $0.topic == "a/y" } >= 2 })
    first.signal(SIGTERM)
    #expect(first.waitForExit() == 0)
    second.signal(SIGTERM)
    #expect(second.waitForExit() == 0)
    #expect(witness.texts(on: "b/x") == ["1", "2"])
    #expect(witness.texts(on: "a/x") == ["1", "1", "2", "2"])
    #expect(witness.texts(on: "b/y") == ["3"])
  }

  /// A bridge of the older protocol drops the mark of what it brings back.
  @Test(arguments: ["mqttv311", "mqttv50"])
  func `what a bridge between both brokers brings back is stopped and counted`(protocol: String)
    throws
  {
    let near = try TestBroker()
    try near.start()
    var options = TestBroker.Options()
    options.lines = [
      "connection back", "address 127.0.0.1:\(near.port)", "bridge_protocol_version \(`protocol`)",
      "topic # out 1 far/ cmd/",
    ]
    let far = try TestBroker(options: options)
    try far.start()
    let bench = try bench(
      #"{from: {broker: near, topic: "cmd/+"}, to: {broker: away, topic: "far/+"}, policy: none}"#,
      more: """
        brokers:
          near: {url: "mqtt://127.0.0.1:\(near.port)"}
          away: {url: "mqtt://127.0.0.1:\(far.port)"}
        """
    )
    let hand = try RecordingSubscriber(port: near.port, filters: ["cmd/#"])
    let witness = try RecordingSubscriber(port: far.port, filters: ["far/#"])
    #expect(far.log().contains("Connecting bridge"))
    #expect(
      bench.repeating(hand, "cmd/ready", "1") { witness.waitFor("far/ready", "1", within: $0) }
    )

    hand.publish("cmd/lamp", "TOGGLE")

    let line = try bench.running().waitForLine(containing: "topic=cmd/lamp")
    #expect(line?.contains("message of our own") == true)
    #expect(line?.contains("to=far/lamp") == true)
    // What was forwarded before the line was logged has arrived once this has.
    hand.publish("cmd/mark", "1")
    #expect(witness.waitFor("far/mark", "1"))
    #expect(witness.texts(on: "far/lamp").count < 40)
    // The next ones are forwarded once each, at any time.
    let before = witness.texts(on: "far/lamp").count
    for payload in ["TOGGLE", "50", "TOGGLE"] {
      hand.publish("cmd/lamp", payload)
      #expect(witness.waitFor { $0.last { $0.topic == "far/lamp" }?.text == payload })
    }
    hand.publish("cmd/end", "1")
    #expect(hand.waitFor { $0.count { $0.topic == "cmd/end" } >= 2 })
    #expect(Array(witness.texts(on: "far/lamp").dropFirst(before)) == ["TOGGLE", "50", "TOGGLE"])
    let status = try bench.client().ask(#"{"status":true}"#)
    let report = try #require(status["status"].flatMap(StatusReport.init), "\(status)")
    #expect((report.counters.first { $0.name == "messages_returned" }?.count ?? 0) >= 1)
    #expect(try bench.running().lines(containing: "topic=cmd/lamp").count == 1)
  }

  /// What is in a payload is nobody's business.
  @Test func `payloads pass as they are, NUL, broken UTF-8 and nothing at all included`() throws {
    let bench = try bench(Self.route + #", {from: "raw/#", to: "cooked/#", policy: none}"#)
    let witness = try bench.witness()
    let payloads: [[UInt8]] = [
      [0], [0, 0x31, 0], [0xFF, 0xFE, 0xC0, 0x80], [0xED, 0xA0, 0x80], [],
      [0xEF, 0xBB, 0xBF], Array(repeating: 0, count: 60_000),
    ]

    for (number, payload) in payloads.enumerated() {
      witness.publish("in/\(number)", payload)
      witness.publish("raw/\(number)", payload, retain: number == 4)
    }

    for (number, payload) in payloads.enumerated() {
      for topic in ["out/\(number)", "cooked/\(number)"] {
        #expect(witness.waitFor { $0.contains { $0.topic == topic } }, "\(topic)")
        #expect(witness.messages.filter { $0.topic == topic }.map(\.payload) == [payload])
      }
    }
    // Nothing at all clears what is retained only where it was meant to.
    let late = try RecordingSubscriber(port: bench.broker.port, filters: ["out/#", "cooked/#"])
    #expect(late.messages.isEmpty)
  }

  /// The destination has more levels than brokers take.
  @Test func `a topic that would become too deep is dropped, not truncated and not fatal`() throws {
    let bench = try bench(#"{from: "in/#", to: "a/b/c/out/#", policy: {delay: 10ms}}"#)
    let witness = try bench.witness()
    let deep = String(repeating: "x/", count: 197) + "x"

    witness.publish("in/\(deep)", "1")
    witness.publish("in/fine", "2")

    #expect(witness.waitFor("a/b/c/out/fine", "2"))
    #expect(witness.messages.filter { $0.topic.hasPrefix("a/b/c/out/x") }.isEmpty)
    #expect(try bench.running().lines(containing: "No connection").isEmpty)
  }

  /// One key, as fast as it goes; then more keys than there is room for.
  @Test func `a flood on one topic is sent as its last value, and uses no memory`() throws {
    let bench = try bench(Self.route)
    let witness = try RecordingSubscriber(port: bench.broker.port, filters: ["out/#"])
    let flood = try RawPublisher(port: bench.broker.port)
    for number in 0..<5000 { flood.publish("in/knob", "warm\(number)") }
    flood.flush()
    #expect(witness.waitFor("out/knob", "warm4999"))
    let before = try bench.running().residentBytes()

    for number in 1...50_000 { flood.publish("in/knob", "\(number)") }
    flood.flush()

    // A broker may drop what it is sent at QoS 0 so fast: the last word is one it must deliver.
    #expect(
      bench.repeating(try bench.witness(), "in/knob", "last") { limit in
        witness.waitFor("out/knob", "last", within: limit)
      },
      "\(witness.texts(on: "out/knob").last ?? "")"
    )
    #expect(try bench.running().residentBytes() - before < 8 << 20)
    #expect(witness.messages.count < 2000)
  }

  @Test func `more topics than the limit are refused, and there is room again later`() throws {
    let bench = try bench(Self.route, more: "limits: {pending: 500}")
    let witness = try RecordingSubscriber(port: bench.broker.port, filters: ["out/#"])
    let end = try RecordingSubscriber(port: bench.broker.port, filters: ["end"])
    let flood = try RawPublisher(port: bench.broker.port)
    let gateway = try bench.running()
    let before = gateway.residentBytes()

    for number in 0..<20_000 { flood.publish("in/\(number)", "x") }
    flood.publish("end", "x")
    flood.flush()
    // A slow broker must not hand on the rest of the flood when there is room again.
    #expect(end.waitFor(count: 1))

    let line = gateway.waitForLine(containing: "too many keys")
    #expect(line?.contains("limits.pending is 500") == true)
    #expect(witness.waitFor { $0.count >= 500 })
    #expect(gateway.residentBytes() - before < 8 << 20)
    // Topics of the past do not hold their places for ever.
    for round in 0..<3 {
      // What came before has left when there is room for one more.
      let first = "out/first/\(round)"
      #expect(
        bench.repeating(try bench.witness(), "in/first/\(round)", "y") { limit in
          witness.waitFor(within: limit) { $0.contains { $0.topic == first } }
        }
      )
      for number in 0..<400 { flood.publish("in/later/\(round)/\(number)", "y") }
      flood.flush()
      let prefix = "out/later/\(round)/"
      #expect(witness.waitFor { $0.count { $0.topic.hasPrefix(prefix) } >= 400 }, "\(round)")
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Shutdown.
@Suite(.blocking) struct ShutdownScenarios {
  @Test func `SIGTERM with 1,000 keys pending sends 1,000 final values before the end`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(1000, policy: "{delay: 60s, max_wait: none}")
    )
    let witness = try bench.witness()
    let client = try bench.client()
    let lines = (0..<3).flatMap { round in
      (0..<1000).map { #"{"key":"dev\#($0)/level","set":\#(round * 1000 + $0)}"# + "\n" }
    }
    client.send(bytes: Array(lines.joined().utf8))
    for _ in lines { #expect(try client.next()["phase"] == "accepted") }

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 0)
    #expect(gateway.lines(containing: "1000 sent").count == 1)
    // Acknowledged by the broker before the end, so they are on their way to everybody.
    #expect(witness.waitFor { $0.count { $0.topic.hasPrefix("cmd/") } >= 1000 })
    for number in 0..<1000 {
      #expect(witness.texts(on: "cmd/dev\(number)") == [#"{"v":\#(2000 + number)}"#])
    }
    #expect(witness.waitFor("settle/status", "offline"))
    #expect(!ControlClient.accepts(bench.socketPath))
  }

  @Test func `values are sent first, and their events follow until the end`() throws {
    let keys = 5000  // More than are kept for a broker that is away.
    let bench = try Bench.running(
      devices: DeviceText.levels(keys, policy: "{delay: 1h, max_wait: none}"),
      settings: "shutdown: {timeout: 1h}"
    )
    let witness = try RecordingSubscriber(
      port: bench.broker.port,
      filters: ["cmd/#", "settle/+/level/event", "settle/+/level", "settle/status"]
    )
    // In the broker, events at QoS 0 overtake commands for subscribers at QoS 1.
    let order = try RecordingSubscriber(
      port: bench.broker.port,
      filters: ["cmd/#", "settle/+/level/event", "settle/status"],
      qos: 0
    )
    let client = try bench.client()
    for number in 0..<keys {
      client.send(#"{"key":"dev\#(number)/level","set":\#(number)}"#)
      if number % 100 == 99 { for _ in 0..<100 { _ = try client.next() } }
    }

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 0)
    #expect(gateway.lines(containing: "Values flushed sent=\(keys)").count == 1)
    #expect(gateway.lines(containing: "dropped").isEmpty)
    #expect(witness.waitFor("settle/status", "offline"))
    let topics = witness.messages.map(\.topic)
    let connections = gateway.lines(containing: "onnect")
    #expect(topics.count { $0.hasPrefix("cmd/") } == keys, "\(connections)")
    #expect(topics.count { $0.hasSuffix("/event") } == keys, "\(connections)")
    // At most what was under way of the last values.
    #expect(order.waitFor("settle/status", "offline"))
    let sent = order.messages.map(\.topic)
    let firstEvent = try #require(sent.firstIndex { $0.hasSuffix("/event") })
    #expect(firstEvent >= keys - 20)
    #expect(sent[firstEvent...].count { $0.hasPrefix("cmd/") } <= 20)
    let last = Dictionary(witness.messages.map { ($0.topic, $0.text) }, uniquingKeysWith: { $1 })
    for number in 0..<keys { #expect(last["settle/dev\(number)/level"] == "\(number)") }
  }

  @Test func `without a broker it ends in time, lists unsent values, and fails`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(3, policy: "{delay: 60s, max_wait: none}"),
      settings: "shutdown: {timeout: 500ms}"
    )
    let client = try bench.client()
    for number in 0..<3 { _ = try client.ask(#"{"key":"dev\#(number)/level","set":1}"#) }
    bench.broker.stop(signal: SIGKILL)

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 1)
    #expect(
      gateway.lines(containing: "0 sent, 3 not sent: dev0/level dev1/level dev2/level").count == 1
    )
  }

  @Test func `a broker that has stopped answering does not hold up the end`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: "{delay: 60s, max_wait: none}"),
      settings: "shutdown: {timeout: 100ms}"
    )
    let witness = try bench.witness()
    _ = try bench.client().ask(#"{"key":"dev0/level","set":1}"#)
    bench.broker.pause()

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 1)
    #expect(gateway.lines(containing: "0 sent, 1 not sent: dev0/level").count == 1)
    // The status is right in the end, by the gateway's own word or by its last will.
    bench.broker.resume()
    #expect(witness.waitFor("settle/status", "offline"))
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `a second signal reports at once`(second: Int32) throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(2, policy: "{delay: 60s, max_wait: none}"),
      settings: "shutdown: {timeout: 60s}"
    )
    let client = try bench.client()
    for number in 0..<2 { _ = try client.ask(#"{"key":"dev\#(number)/level","set":1}"#) }
    bench.broker.stop(signal: SIGKILL)

    let gateway = try bench.running()
    gateway.signal(SIGTERM)
    #expect(gateway.waitForLine(containing: "Shutting down") != nil)
    gateway.signal(second)

    #expect(gateway.waitForExit() == 1)
    #expect(
      gateway.lines(containing: "0 sent, 2 not sent: dev0/level dev1/level").count == 1
    )
  }

  @Test func `after a second signal the status is offline all the same`() throws {
    let bench = try Bench.running(
      devices: DeviceText.lamp(),
      settings: "shutdown: {timeout: 60s}"
    )
    let witness = try bench.witness()
    _ = try bench.client().ask(#"{"key":"desk-lamp/brightness","set":1}"#)
    bench.broker.pause()
    let gateway = try bench.running()
    gateway.signal(SIGINT)
    #expect(gateway.waitForLine(containing: "Shutting down") != nil)
    gateway.signal(SIGINT)
    #expect(gateway.waitForExit() == 1)

    bench.broker.resume()

    #expect(witness.waitFor("settle/status", "offline"))
  }

  @Test func `with nothing pending it ends at once and well`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())

    let gateway = try bench.running()
    gateway.signal(SIGINT)

    #expect(gateway.waitForExit() == 0)
    #expect(gateway.lines(containing: "0 sent").count == 1)
    #expect(try bench.witness().waitFor("settle/status", "offline"))
  }

  @Test func `lanes do not hold the flush back`() throws {
    let devices = (0..<30).map {
      """
      dev\($0):
        lane: bus
        properties:
          level: {type: number, range: [0, 100], policy: {delay: 60s, max_wait: none}, \
      command: {topic: cmd/dev\($0), payload: $value}}

      """
    }
    let bench = try Bench.running(
      devices: devices.joined(),
      settings: "lanes: {bus: {rate: 1/s, burst: 1}}"
    )
    let client = try bench.client()
    for number in 0..<30 { _ = try client.ask(#"{"key":"dev\#(number)/level","set":1}"#) }

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 0)
    #expect(gateway.lines(containing: "30 sent").count == 1)
  }

  @Test func `values for an offline device count as not sent, the others are sent`() throws {
    let bench = try Bench.running(
      devices: DeviceText.lamp() + DeviceText.levels(1, policy: "{delay: 60s, max_wait: none}")
        + """
        boiler:
          properties:
            mode: {type: text, command: {topic: cmd/boiler, payload: $value}}
          availability: {topic: boiler/status, online: online, offline: offline}

        """
    )
    let witness = try bench.witness()
    let client = try bench.client()
    witness.publish("boiler/status", "offline", retain: true)
    try #require(witness.switchesTheLampOn())
    _ = try client.ask(#"{"key":"boiler/mode","set":"eco"}"#)
    _ = try client.ask(#"{"key":"dev0/level","set":9}"#)

    let gateway = try bench.running()
    gateway.signal(SIGTERM)

    #expect(gateway.waitForExit() == 1)
    #expect(gateway.lines(containing: "1 sent, 1 not sent: boiler/mode").count == 1)
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":9}"#])
  }

  @Test func `changes that arrive during shutdown are refused`() throws {
    let bench = try Bench.running(
      devices: DeviceText.levels(1, policy: "{delay: 60s, max_wait: none}"),
      settings: "shutdown: {timeout: 60s}"
    )
    let client = try bench.client()
    _ = try client.ask(#"{"key":"dev0/level","set":1}"#)
    bench.broker.stop(signal: SIGKILL)
    let gateway = try bench.running()
    gateway.signal(SIGTERM)
    #expect(gateway.waitForLine(containing: "Shutting down") != nil)

    let reply = try client.ask(#"{"key":"dev0/level","set":2,"id":"late"}"#)

    #expect(reply["phase"] == "rejected")
    #expect(reply["reason"]?.string?.contains("shutting down") == true)
    try bench.broker.start()
    #expect(gateway.waitForExit() == 0)
    #expect(gateway.lines(containing: "1 sent").count == 1)
  }
}

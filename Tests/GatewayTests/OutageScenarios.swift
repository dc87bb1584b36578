// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// How soon the gateway detects that its broker is lost and back, and what that costs.
@Suite(.blocking) struct OutageScenarios {
  private static let keys = 20

  private func bench() throws -> Bench {
    try Bench.running(
      devices: DeviceText.levels(Self.keys, policy: "{delay: 20ms, max_wait: 100ms}")
    )
  }

  /// Sends `rounds` values to every key; returns the last one.
  private func flood(_ rounds: ClosedRange<Int>, through client: ControlClient) -> Int {
    for round in rounds {
      let lines = (0..<Self.keys).map { #"{"key":"dev\#($0)/level","set":\#(round)}"# + "\n" }
      client.send(bytes: Array(lines.joined().utf8))
      // A client that does not read is not read from.
      for _ in lines { _ = client.nextLine() }
    }
    return rounds.upperBound
  }

  /// Killed in the middle, back after two seconds.
  @Test func `a broker that was offline is found again, and gets every last value`() throws {
    let bench = try bench()
    let witness = try bench.witness()
    let client = try bench.client()
    var last = flood(1...20, through: client)
    bench.broker.stop(signal: SIGKILL)
    // The outage has a length; the changes go on meanwhile.
    Pace.every(.milliseconds(200), count: 11) { number in
      last = flood((last + 1)...(last + 2), through: client)
    }
    try bench.broker.start()
    // A client that received its online status is connected again, too.
    let fresh = try RecordingSubscriber(port: bench.broker.port, filters: ["settle/status"])
    #expect(fresh.waitFor("settle/status", "online"))
    last = flood((last + 1)...(last + 1), through: client)
    let final = #"{"v":\#(last)}"#
    #expect(witness.waitFor { $0.count { $0.text == final } >= Self.keys })
  }

  /// Stopped, its connections open.
  @Test func `a broker that hangs is detected, and memory does not grow meanwhile`() throws {
    let bench = try bench()
    let witness = try bench.witness()
    let client = try bench.client()
    let gateway = try bench.running()
    var last = flood(1...500, through: client)
    #expect(witness.waitFor("cmd/dev0", #"{"v":\#(last)}"#))

    let start = EventLoop.now()
    bench.broker.pause()
    last = flood((last + 1)...(last + 200), through: client)
    let before = gateway.residentBytes()
    last = flood((last + 1)...(last + 1000), through: client)
    #expect(gateway.waitForLine(containing: "no acknowledgement within 3") != nil)
    // A message that was in flight at that moment may have left half a second before.
    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(2500))
    last = flood((last + 1)...(last + 1000), through: client)

    #expect(gateway.residentBytes() - before < 4 << 20)
    guard case .array(let rows)? = try client.ask(#"{"pending":"*","id":"p"}"#)["pending"] else {
      Issue.record("nothing is pending")
      return
    }
    #expect(rows.count == Self.keys)
    #expect(rows.allSatisfy { $0["value"] == .integer(Int64(last)) })
    bench.broker.resume()
    let final = #"{"v":\#(last)}"#
    #expect(witness.waitFor { $0.count { $0.text == final } >= Self.keys })
  }

  /// The name server says nothing; the thread that waits for it is nobody's business.
  @Test func `a name that cannot be resolved holds up neither changes nor the end`() throws {
    let bench = try Bench(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    try bench.launchGateway(
      environment: ["SETTLE_MQTT_URL": "mqtt://no-such-broker.invalid:1883"]
    )
    let gateway = try bench.running()
    let client = try bench.client()
    let accepted = try client.ask(#"{"key":"dev0/level","set":1}"#)
    #expect(accepted["phase"] == "accepted")
    #expect(try client.ask(#"{"cancel":"*"}"#)["cancelled"] == 1)
    gateway.signal(SIGTERM)
    #expect(gateway.waitForExit() == 0)
  }

  /// A packet of 256 MB, at a network's pace, from a broker that was told a limit.
  @Test func `a broker that exceeds the packet limit is disconnected before it fills the memory`()
    throws
  {
    // PUBLISH with the largest length there is, to the topic "a".
    let start: [UInt8] = [0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 0x61, 0]
    let part = [UInt8](repeating: 0x78, count: 1 << 16)
    let hostile = try ScriptedBroker(
      .init { packet in
        guard packet.connection == 1, packet.kind == .subscribe else { return packet.politeAnswer }
        return packet.politeAnswer + [.send(start), .drip(part, count: 5000)]
      }
    )
    let bench = try Bench(devices: DeviceText.levels(1, policy: "{delay: 20ms}"))
    try bench.launchGateway(
      environment: ["SETTLE_MQTT_URL": "mqtt://127.0.0.1:\(hostile.port)"]
    )
    let gateway = try bench.running()

    let before = gateway.peakBytes()
    let line = gateway.waitForLine(containing: "No connection")
    #expect(line?.contains("larger than") == true, "\(line ?? "")")
    #expect(hostile.waitFor(connections: 2))
    #expect(gateway.peakBytes() - before < 32 << 20)
    let client = try bench.client()
    client.send(#"{"key":"dev0/level","set":1,"id":"a","wait":"sent"}"#)
    #expect(try client.next { $0["id"] == "a" && $0["phase"] == "sent" }["value"] == 1)
  }
}

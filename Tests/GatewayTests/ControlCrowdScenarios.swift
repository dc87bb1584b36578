// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Many clients of the control socket that ask for much, or read nothing.
@Suite(.blocking) struct ControlCrowdScenarios {
  private let slow = "{delay: 3600s, max_wait: none}"

  /// A reply that is larger than what the socket and the gateway keep for a client.
  @Test func `rows show the state at the time at which the client reads them`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(6000, policy: slow))
    let patient = try bench.client()
    patient.send(#"{"get":"*","id":"all"}"#)
    patient.send(#"{"key":"dev0/level","set":9,"id":"behind"}"#)
    let other = try bench.client()
    #expect(try other.ask(#"{"key":"dev5999/level","set":7}"#)["phase"] == "accepted")

    let reply = try patient.next()
    guard case .array(let rows) = reply["get"] else {
      Issue.record("no rows")
      return
    }
    #expect(reply["id"] == "all")
    #expect(rows.map { $0["key"]?.string } == (0..<6000).map { "dev\($0)/level" })
    #expect(rows.first?["target"] == .null)
    #expect(rows.last?["target"] == 7)
    #expect(try patient.next()["id"] == "behind")
  }

  /// As `many requests at once are all answered`, but every reply is one of many to be read.
  @Test func `replies that nobody reads take little memory`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(3000, policy: slow))
    let good = try bench.client()
    _ = try good.ask(#"{"get":"dev0/level","id":0}"#)
    let gateway = try bench.running()
    let before = gateway.residentBytes()

    let clients = try (0..<60).map { _ in
      let client = try bench.client()
      client.send(#"{"describe":"*"}"#)
      return client
    }
    var most = before
    for value in 0..<200 {
      #expect(try good.ask(#"{"key":"dev7/level","set":\#(value)}"#)["phase"] == "accepted")
      most = max(most, gateway.residentBytes())
    }

    #expect(most - before < 24 << 20)
    withExtendedLifetime(clients) {}
    // Those may have lost theirs: the gateway waits 20 s for a client to read. One more reads at
    // once.
    let reader = try bench.client()
    reader.send(#"{"describe":"*"}"#)
    guard case .array(let rows) = try reader.next()["describe"] else {
      Issue.record("no rows")
      return
    }
    #expect(rows.count == 3000)
  }

  /// The control socket full of clients that read no reply.
  @Test func `clients that read nothing make room, a good client stays`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(300, policy: slow))
    let good = try bench.client()
    _ = try good.ask(#"{"get":"dev0/level","id":0}"#)
    let questions = Array(String(repeating: #"{"get":"*"}"# + "\n", count: 30).utf8)
    let clients = try (0..<511).map { _ in
      let client = try bench.client()
      client.send(bytes: questions)
      return client
    }

    // They have had time to read.
    let start = EventLoop.now()
    while start.duration(to: EventLoop.now()) < .seconds(2) {
      _ = try good.ask(#"{"get":"dev0/level","id":1}"#)
    }

    for number in 0..<20 {
      let fresh = try bench.client()
      #expect(try fresh.ask(#"{"get":"dev1/level","id":\#(number)}"#)["id"]?.double != nil)
      #expect(try good.ask(#"{"get":"dev0/level","id":2}"#)["id"] == 2)
    }
    #expect(try bench.running().lines(containing: "Control connection refused").isEmpty)
    withExtendedLifetime(clients) {}
  }

  @Test func `a client may watch and record 16 patterns`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: slow))
    let client = try bench.client()
    for number in 0..<8 { client.send(#"{"watch":"dev\#(number)*"}"#) }
    for number in 0..<8 { client.send(#"{"record":"dev\#(number)*"}"#) }
    #expect(try client.ask(#"{"get":"dev0/level","id":"in"}"#)["id"] == "in")

    for operation in ["watch", "record"] {
      let reply = try client.ask(#"{"\#(operation)":"*","id":"over"}"#)
      #expect(reply["id"] == "over")
      #expect(reply["error"]?["code"] == "limit")
      #expect(reply["error"]?["line"] != .null)
    }
    // The others still hear of changes.
    client.send(#"{"key":"dev0/level","set":1}"#)
    #expect(try client.next { $0["event"] != nil }["event"]?["phase"] == "accepted")
  }

  @Test func `the log is not flooded with clients that are refused`() throws {
    let bench = try Bench(devices: DeviceText.levels(1, policy: slow))
    try bench.broker.start()
    try bench.launchGateway(descriptorLimit: 40)
    let gateway = try bench.running()

    var clients: [ControlClient] = []
    for _ in 0..<150 { clients.append(try bench.client()) }
    #expect(gateway.waitForLine(containing: "no file descriptors left") != nil)
    clients = []
    #expect(gateway.waitForNoClient())
    #expect(gateway.lines(containing: "Control connection refused").count <= 3)
  }
}

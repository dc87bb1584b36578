// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Presses of a button, from a client to a real broker.
@Suite(.blocking) struct ActionScenarios {
  private static let devices = """
    gate:
      lane: bus
      properties:
        button:
          type: action
          values: [UP, DOWN, STOP]
          urgent: [STOP]
          command: {topic: gate/button/set, payload: $value}

    """

  private static func word(_ number: Int) -> String { number.isMultiple(of: 3) ? "DOWN" : "UP" }

  private static func press(_ client: ControlClient, _ count: Int) {
    let lines = (0..<count).map {
      #"{"key":"gate/button","set":"\#(word($0))","id":"p\#($0)","wait":"sent"}"# + "\n"
    }
    client.send(bytes: Array(lines.joined().utf8))
  }

  /// The first row of a reply.
  private static func row(_ question: String, of bench: Bench) throws -> JSONValue? {
    let reply = try bench.client().ask(#"{"\#(question)":"gate/button"}"#)
    guard case .array(let rows)? = reply[question] else { return nil }
    return rows.first
  }

  @Test(arguments: [false, true])
  func `ten quick presses are ten commands, in order, at the rate of the lane`(
    isJournalled: Bool
  ) throws {
    let lanes = "lanes: {bus: {rate: 20/s, burst: 1}}"
    let bench =
      try isJournalled
      ? Bench.journalling(Self.devices, settings: lanes)
      : Bench.running(devices: Self.devices, settings: lanes)
    let gate = try RecordingSubscriber(port: bench.broker.port, filters: ["gate/button/set"])
    let client = try bench.client()
    let start = EventLoop.now()
    Self.press(client, 10)
    let row = try Self.row("get", of: bench)
    let pending = try Self.row("pending", of: bench)

    #expect(gate.waitFor(count: 10))
    #expect(gate.messages.map(\.text) == (0..<10).map(Self.word))
    for (place, message) in gate.messages.enumerated() {
      #expect(start.duration(to: message.at) >= .milliseconds(50 * place))
    }
    // On a busy machine many have left meanwhile.
    #expect((row?["waiting"]?.double ?? 2) > 1)
    #expect((pending?["waiting"]?.double ?? 2) > 1)

    var phases: [String: [String]] = [:]
    while phases.values.count(where: { $0.contains("sent") }) < 10 {
      let line = try client.next { $0["phase"] != nil }
      phases[line["id"]?.string ?? "", default: []].append(line["phase"]?.string ?? "")
    }
    #expect(phases.count == 10)
    for (id, own) in phases { #expect(own == ["accepted", "sending", "sent"], "\(id)") }
    #expect(gate.messages.count == 10)
  }

  @Test func `the thirty-fourth press is rejected, and STOP takes the place of those that wait`()
    throws
  {
    let bench = try Bench.running(
      devices: Self.devices,
      settings: "lanes: {bus: {rate: 6/m, burst: 1}}"
    )
    let gate = try RecordingSubscriber(port: bench.broker.port, filters: ["gate/button/set"])
    let client = try bench.client()
    _ = try client.ask(#"{"key":"gate/button","set":"UP"}"#)
    #expect(gate.waitFor(count: 1))
    // All at once: the next token is ten seconds away.
    Self.press(client, 33)
    for number in 0..<32 {
      let reply = try client.next { $0["id"] == .string("p\(number)") }
      #expect(reply["phase"] == "accepted")
    }
    let rejected = try client.next { $0["id"] == "p32" }
    #expect(rejected["phase"] == "rejected")
    #expect(rejected["reason"]?.string?.contains("32 commands of gate/button wait") == true)

    client.send(#"{"watch":"gate/button","id":"w"}"#)
    client.send(#"{"key":"gate/button","set":"STOP"}"#)
    #expect(gate.waitFor(count: 2))
    #expect(gate.messages.map(\.text) == ["UP", "STOP"])
    var superseded = 0
    while superseded < 32 {
      let line = try client.next { $0["event"]?["phase"] == "superseded" }
      #expect(line["event"]?["reason"] == "urgent")
      superseded += 1
    }
  }

  @Test func `a shutdown sends the presses that wait, in order`() throws {
    let bench = try Bench.running(
      devices: Self.devices,
      settings: "lanes: {bus: {rate: 1/s, burst: 1}}"
    )
    let gate = try RecordingSubscriber(port: bench.broker.port, filters: ["gate/button/set"])
    Self.press(try bench.client(), 8)
    #expect(gate.waitFor(count: 1))
    try bench.stop()
    #expect(gate.waitFor(count: 8))
    #expect(gate.messages.map(\.text) == (0..<8).map(Self.word))
  }
}

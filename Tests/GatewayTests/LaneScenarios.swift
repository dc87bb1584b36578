// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// A lane to a mesh that accepts a limited rate of messages.
@Suite(.blocking) struct LaneScenarios {
  private static let count = 30
  private static let silent = 7
  private static let delay: Duration = .seconds(2)
  /// Between two tokens of a lane of 5/s.
  private static let distance: Duration = .milliseconds(200)
  private static let burst = 5

  private static func name(_ number: Int) -> String { "lamp\(number < 10 ? "0" : "")\(number)" }

  /// Thirty lamps on one lane; one of them will not answer, and is given up soon.
  private static let devices = (0..<count).map { number in
    """
    \(name(number)):
      lane: mesh
      properties:
        brightness:
          type: number
          range: [0, 254]
          step: 1
          policy: {delay: 2s, max_wait: none}
          command: {topic: mesh/\(name(number))/set, payload: {brightness: $value}}
          state: {topic: mesh/\(name(number)), value: /brightness}
          confirm: {within: \(number == silent ? "2s, retries: 1" : "60s, retries: 0")}

    """
  }.joined()

  /// Scenes `s1` to `s3` of all lamps: the values of each scene are set at one instant.
  private static let scenes =
    "scenes:\n"
    + (1...3).map { round in
      let values = (0..<count).map { "\(name($0)): {brightness: \(round * 60 + $0)}" }
      return "  s\(round): {\(values.joined(separator: ", "))}\n"
    }.joined()

  @Test func `a scene of thirty lamps arrives whole, in order, at the lane's rate`() throws {
    let bench = try Bench.running(
      devices: Self.devices + Self.scenes,
      settings: "lanes: {mesh: {rate: 5/s, burst: \(Self.burst)}}"
    )
    let mesh = try RecordingSubscriber(port: bench.broker.port, filters: ["mesh/+/set"])
    let client = try bench.client()
    client.send(#"{"watch":"*","id":"w"}"#)

    // Three hands on each slider; only where it stopped counts.
    let start = EventLoop.now()
    client.send((1...3).map { #"{"scene":"s\#($0)"}"# }.joined(separator: "\n"))
    // Beyond the burst: by now everything has settled.
    #expect(mesh.waitFor(count: Self.burst + 1))
    let pending = try bench.client().ask(#"{"pending":"*"}"#)["pending"]

    // Each lamp but one answers what it got, as it gets it; that one is asked twice.
    var answered = 0
    while answered < Self.count + 1, mesh.waitFor(count: answered + 1) {
      let message = mesh.messages[answered]
      answered += 1
      guard !message.topic.contains(Self.name(Self.silent)) else { continue }
      mesh.publish(String(message.topic.dropLast(4)), message.payload)
    }

    let messages = mesh.messages
    try #require(messages.count == Self.count + 1)
    var seen: Set<String> = []
    let firsts = messages.filter { seen.insert($0.topic).inserted }
    #expect(firsts.map(\.topic) == (0..<Self.count).map { "mesh/\(Self.name($0))/set" })
    #expect(firsts.map(\.text) == (0..<Self.count).map { #"{"brightness":\#(180 + $0)}"# })
    // The burst and then the rate, never faster; what is asked again takes a token like the rest.
    for (place, message) in messages.enumerated() {
      let tokens = max(0, place + 1 - Self.burst)
      #expect(start.duration(to: message.at) >= Self.delay + Self.distance * tokens, "\(place)")
    }
    try expectWaitingForTheLane(pending)

    var ends: [String: String] = [:]
    while ends.count < Self.count {
      let line = try client.next { $0["watch"] == "w" }
      guard let event = line["event"], let phase = event["phase"]?.string,
        phase == "confirmed" || phase == "failed"
      else { continue }
      ends[event["key"]?.string ?? ""] = phase
    }
    #expect(ends.values.count { $0 == "confirmed" } == Self.count - 1)
    #expect(ends["\(Self.name(Self.silent))/brightness"] == "failed")
  }

  /// The burst has left: the others wait for tokens, one after the other.
  private func expectWaitingForTheLane(_ pending: JSONValue?) throws {
    guard case .array(let rows) = pending else {
      Issue.record("nothing is pending")
      return
    }
    let waiting = rows.filter { $0["waits"] == "lane" }
    #expect(rows.allSatisfy { $0["waits"] == "lane" || $0["waits"] == "in_flight" })
    // On a busy machine many have left meanwhile.
    #expect(waiting.count >= 2)
    let due = waiting.compactMap { $0["due_ms"]?.double }
    #expect(due.count == waiting.count)
    #expect(due == due.sorted())
    let distance = Self.distance / .milliseconds(1)
    #expect(due.allSatisfy { $0 <= distance * Double(Self.count - Self.burst) })
    #expect(zip(due, due.dropFirst()).allSatisfy { abs($1 - $0 - distance) <= 1 })
    #expect(waiting.allSatisfy { $0["collapsed"] == 2 })
  }

  @Test func `a bridge that says that it is busy halves the window`() throws {
    let device = """
      lamp:
        lane: mesh
        properties:
          level: {type: number, range: [0, 100], policy: {delay: 0}, \
      command: {topic: mesh/lamp, payload: $value}}

      """
    let bench = try Bench.running(
      devices: device,
      settings: "lanes: {mesh: {window: {start: 16}, "
        + #"busy: {topic: mesh/log, value: /message, is: "*BUSY*"}}}"#
    )
    let bridge = try RecordingSubscriber(port: bench.broker.port, filters: ["mesh/lamp"])
    func size(after message: String) throws -> Int? {
      #expect(bridge.publish("mesh/log", message))
      // The gateway has received it once it has sent what was published behind it.
      let count = bridge.messages.count
      #expect(bridge.publish("settle/lamp/level/set", "\(count)"))
      #expect(bridge.waitFor(count: count + 1))
      let status = try bench.client().ask(#"{"status":true}"#)["status"]
      let report = try #require(status.flatMap(StatusReport.init))
      return report.queue?.lanes.first?.window?.size
    }

    for message in [#"{"message":"all is well"}"#, "BUSY", #"{"other":"BUSY"}"#, "{", ""] {
      #expect(try size(after: message) == 16, "\(message)")
    }
    #expect(try size(after: #"{"message":"status BUSY, try again"}"#) == 8)
  }

  @Test func `a value that changes while it waits for its lane is sent once, as its newest`() throws
  {
    let devices = ["a", "b"].map {
      """
      \($0):
        lane: mesh
        properties:
          level: {type: number, range: [0, 100], policy: {delay: 0}, \
      command: {topic: mesh/\($0), payload: $value}}

      """
    }
    let bench = try Bench.running(
      devices: devices.joined(),
      settings: "lanes: {mesh: {rate: 2/s, burst: 1}}"
    )
    let witness = try bench.witness()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"a/level","set":1}"#)
    #expect(witness.waitFor("mesh/a", "1"))

    client.send((1...5).map { #"{"key":"b/level","set":\#($0)}"# }.joined(separator: "\n"))

    #expect(witness.waitFor("mesh/b", "5"))
    #expect(witness.texts(on: "mesh/b").last == "5")
    #expect(witness.texts(on: "mesh/b").count <= 2)
  }
}

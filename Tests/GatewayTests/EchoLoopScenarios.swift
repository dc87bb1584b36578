// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// A bridge feeds the device's reports back to the command topic.
@Suite(.blocking) struct EchoLoopScenarios {
  private static let devices = """
    lamp:
      properties:
        level:
          type: number
          range: [0, 100]
          step: 1
          policy: {delay: 20ms, max_wait: none}
          command: {topic: cmd/lamp, payload: {v: $value}}
          state: {topic: home/lamp, value: /v}

    """

  private func rejections(_ witness: RecordingSubscriber) throws -> [JSONValue] {
    try witness.texts(on: "settle/lamp/level/event").map { try JSONParser.parse($0) }
      .filter { $0["phase"] == "rejected" }
  }

  @Test(arguments: ["settle/lamp/level/set", "settle/lamp/set"])
  func `a set-state-set loop is slowed, its topics are named, and nothing is rejected`(
    commands: String
  ) throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    // A member of a device-level set is an object; the bridge's values are bare.
    let isWhole = commands == "settle/lamp/set"
    let bridge = try EchoingBridge(
      port: bench.broker.port,
      states: "home/lamp",
      commands: commands,
      orders: "cmd/lamp",
      wrap: { value in isWhole ? #"{"level":\#(value)}"# : value }
    )
    witness.publish("settle/lamp/level/set", "60")
    #expect(witness.waitFor("cmd/lamp", #"{"v":60}"#))
    // A loop whose two values wait for the same moment is down to one, and ends; so the value that
    // the lamp does not have is asked for until it is sent. That goes on, slowly, once the gateway
    // slows it.
    for _ in 1...12 {
      let sent = witness.texts(on: "cmd/lamp").count
      for _ in 1...2000 {
        let other = witness.texts(on: "cmd/lamp").last == #"{"v":60}"# ? "80" : "60"
        witness.publish(commands, isWhole ? #"{"level":\#(other)}"# : other)
        let isSent = witness.waitFor(within: .milliseconds(50)) {
          $0.count { $0.topic == "cmd/lamp" } > sent
        }
        if isSent { break }
      }
      #expect(witness.texts(on: "cmd/lamp").count > sent)
    }

    let line = try #require(
      try bench.running().waitForLine(containing: "Feedback loop slowed")
    )
    #expect(line.contains("commands=\(commands)"))
    #expect(line.contains("publishes=cmd/lamp"))
    #expect(line.contains("states=home/lamp"))
    #expect(line.contains(#"values="80 and 60""#) || line.contains(#"values="60 and 80""#))
    #expect(try rejections(witness).isEmpty)
    #expect(try bench.running().lines(containing: "Feedback loop slowed").count == 1)
    let client = try bench.client()
    // At once: what the bridge makes of the last one may come within its quiet period, and is
    // newer.
    let own = try client.ask(#"{"key":"lamp/level","set":35,"id":1,"now":true,"wait":"sent"}"#)
    #expect(own["phase"] == "accepted")
    #expect(witness.waitFor("cmd/lamp", #"{"v":35}"#))
    withExtendedLifetime(bridge) {}
  }

  @Test func `users and scripts that alternate without such a bridge are never slowed`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    // The device reports once, and then no more.
    witness.publish("home/lamp", #"{"v":20}"#)
    for number in 0..<20 {
      let value = number.isMultiple(of: 2) ? 60 : 80
      witness.publish("settle/lamp/level/set", "\(value)")
      #expect(witness.waitFor { $0.count { $0.topic == "cmd/lamp" } > number })
    }
    #expect(witness.texts(on: "cmd/lamp").count == 20)
    #expect(try rejections(witness).isEmpty)
    #expect(try bench.running().lines(containing: "Feedback loop").isEmpty)
  }
}

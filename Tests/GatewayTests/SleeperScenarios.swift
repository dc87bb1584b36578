// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// A device that listens only after it has reported itself.
@Suite(.blocking) struct SleeperScenarios {
  private static let devices = """
    valve:
      awake: {topic: valve/hello, value: [awake, announce]}
      properties:
        target:
          type: number
          range: [5, 30]
          step: 0.5
          policy: {delay: 20ms, max_wait: none}
          command: {topic: valve/set, payload: $value}
          state: {topic: valve}

    """

  @Test func `a value waits until the valve reports itself, and every surface says so`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    let run = try SettleRun(
      ["set", "valve/target", "21.5", "--wait"],
      socketPath: bench.socketPath
    )
    let client = try bench.client()
    while try waits(client) != "asleep" {}
    witness.publish("valve/hello", "busy")
    witness.publish("valve", "19")
    #expect(
      witness.waitFor {
        $0.contains { $0.topic == "settle/valve/info" && $0.text.contains("19") }
      }
    )
    #expect(witness.texts(on: "valve/set").isEmpty)

    let described = try SettleRun(["describe", "valve/target"], socketPath: bench.socketPath)
    #expect(described.waitForExit() == 0)
    #expect(described.output.contains("awake      valve/hello"), "\(described.output)")
    #expect(described.output.contains("it would not be sent now: the device valve is asleep"))
    let status = try client.ask(#"{"status":true}"#)["status"]
    #expect(status?["queue"]?["asleep"] == 1)
    #expect(first(of: status?["devices"]?["sleepers"])?["id"] == "valve")

    witness.publish("valve/hello", "announce")

    #expect(witness.waitFor("valve/set", "21.5"))
    witness.publish("valve", "21.5")
    #expect(run.waitForExit() == 0)
    #expect(run.errors.contains("waiting: the device valve is asleep"), "\(run.errors)")
    #expect(run.lines.first?.reason == "the device is asleep")
    #expect(run.lines.last?.phase == "confirmed")
  }

  @Test func `a retained report wakes nobody`() throws {
    let bench = try Bench(devices: Self.devices)
    try bench.broker.start()
    try bench.witness().publish("valve/hello", "awake", retain: true)
    try bench.startGateway()
    let client = try bench.client()
    _ = try client.ask(#"{"key":"valve/target","set":21,"now":true}"#)
    #expect(try waits(client) == "asleep")
    #expect(try bench.witness().texts(on: "valve/set").isEmpty)
  }

  /// What the target waits for.
  private func waits(_ client: ControlClient) throws -> JSONValue? {
    first(of: try client.ask(#"{"pending":"valve/target"}"#)["pending"])?["waits"]
  }

  private func first(of rows: JSONValue?) -> JSONValue? {
    guard case .array(let rows) = rows else { return nil }
    return rows.first
  }
}

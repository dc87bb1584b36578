// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// `settle`, the gateway, mosquitto and a thermostat, as separate processes.
@Suite(.blocking) struct CommandLineScenarios {
  private static let set = ["set", "thermostat/target_temperature", "21.5", "--wait=confirmed"]
  private static let command = #"{"setpoint":21.5}"#

  private func bench(confirmedWithin limit: String = "300ms") throws -> (Bench, RecordingSubscriber)
  {
    let bench = try Bench(
      devices: """
        thermostat:
          properties:
            target_temperature:
              type: number
              range: [5, 30]
              step: 0.5
              policy: {delay: 50ms, max_wait: none}
              command: {topic: heating/set, payload: {setpoint: $value}}
              state: {topic: heating, value: /setpoint}
              confirm: {within: \(limit), tolerance: 0.1, retries: 2}

        """
    )
    try bench.broker.start()
    let witness = try bench.witness()
    witness.publish("heating", #"{"setpoint":19.0}"#, retain: true)
    try bench.startGateway()
    try #require(witness.waitFor("settle/thermostat/target_temperature", "19"))
    return (bench, witness)
  }

  @Test func `set and wait prints the phases and ends well when the device confirms`() throws {
    let (bench, witness) = try bench(confirmedWithin: "1m")

    let run = try SettleRun(Self.set, socketPath: bench.socketPath)
    #expect(witness.waitFor("heating/set", Self.command))
    // Within the tolerance, as thermostats round.
    witness.publish("heating", #"{"setpoint":21.53}"#)

    #expect(run.waitForExit() == 0)
    let phases = run.lines.map(\.phase)
    #expect(phases.prefix(2) == ["accepted", "sending"])
    #expect(phases.last == "confirmed")
    #expect(run.lines.allSatisfy { $0.value == "21.5" })
    #expect(run.errors.isEmpty, "\(run.errors)")
  }

  @Test func `set and wait fails after the last retry if the device does not report`() throws {
    let (bench, witness) = try bench()

    let run = try SettleRun(Self.set, socketPath: bench.socketPath)

    #expect(run.waitForExit() == 1)
    #expect(
      run.lines.map(\.phase)
        == ["accepted", "sending", "sent", "sending", "sent", "sending", "sent", "failed"]
    )
    #expect(run.lines.last?.reason.contains("not confirmed") == true)
    #expect(run.errors.contains("thermostat/target_temperature: failed: not confirmed"))
    #expect(witness.texts(on: "heating/set", count: 3).count == 3)
    // What was asked for is shown, and taken back.
    let targets = witness.texts(on: "settle/thermostat/target_temperature", count: 3)
    #expect(targets == ["19", "21.5", "19"])
  }

  @Test func `set and wait ends with the ttl while the broker is offline`() throws {
    let (bench, _) = try bench()
    bench.broker.stop(signal: SIGKILL)
    #expect(try bench.running().waitForLine(containing: "No connection") != nil)

    let start = EventLoop.now()
    let run = try SettleRun(Self.set + ["--ttl", "400ms"], socketPath: bench.socketPath)

    #expect(run.waitForExit() == 1)
    #expect(start.duration(to: EventLoop.now()) >= .milliseconds(400))
    #expect(run.lines.map(\.phase) == ["accepted", "expired"])
    #expect(run.errors.contains("expired"))
    let row = try bench.client().ask(#"{"get":"thermostat/*"}"#)["get"]
    guard case .array(let rows)? = row else {
      Issue.record("no row")
      return
    }
    #expect(rows.first?["target"] == 19)
  }
}

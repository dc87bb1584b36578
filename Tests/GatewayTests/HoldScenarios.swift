// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import TestBroker
import Testing

/// A person's change keeps automation away, on every surface.
@Suite(.blocking) struct HoldScenarios {
  private static let devices = """
    lamp:
      properties:
        level:
          type: number
          range: [0, 100]
          hold: 15m
          hands: [panel, cli, knob]
          policy: {delay: 20ms, max_wait: none}
          command: {topic: cmd/level, payload: $value}
        mode: {type: text, command: {topic: cmd/mode}}

    """
  private static let inputs = """
    inputs: [{topic: remote/hall, source: knob, map: {up: {key: lamp/level, set: 60}}}]
    """

  @Test func `a change by a knob holds the lamp against messages, the socket and sets`() throws {
    let bench = try Bench.running(devices: Self.devices, settings: Self.inputs)
    let witness = try bench.witness()
    witness.publish("remote/hall", "up")
    #expect(witness.waitFor("cmd/level", "60"))

    witness.publish("settle/lamp/level/set", "10")

    #expect(
      witness.waitFor {
        $0.contains { message in
          message.topic == "settle/lamp/level/event"
            && message.text.contains(#""phase":"rejected""#)
            && message.text.contains(#""reason":"held by knob""#)
        }
      }
    )
    let client = try bench.client()
    let single = try client.ask(#"{"key":"lamp/level","set":20,"source":"rule"}"#)
    #expect(single["phase"] == "rejected" && single["reason"] == "held by knob")
    let several = try client.ask(#"{"key":"lamp","set":{"level":30,"mode":"x"}}"#)
    #expect(several["reason"] == "level: held by knob")
    #expect(try running(bench, "Message rejected").contains("held by a person"))

    let run = try SettleRun(["set", "lamp/level", "70"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 0, "\(run.errors)")
    #expect(witness.waitFor("cmd/level", "70"))
    #expect(witness.texts(on: "cmd/level") == ["60", "70"])
    #expect(witness.texts(on: "cmd/mode").isEmpty)

    let described = try SettleRun(["describe", "lamp/level"], socketPath: bench.socketPath)
    #expect(described.waitForExit() == 0)
    #expect(described.output.contains("panel, cli, knob keeps others away for 15m"))
    #expect(described.output.contains("held by cli for another 14m"))
  }

  private func running(_ bench: Bench, _ line: String) throws -> String {
    try bench.running().waitForLine(containing: line) ?? ""
  }
}

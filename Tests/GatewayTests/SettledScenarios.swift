// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import RegexBuilder
import TestBroker
import Testing

/// `settle wait` and `--wait=settled`: until a key is quiet and done, from any source.
@Suite(.blocking) struct SettledScenarios {
  private let key = "desk-lamp/brightness"
  private let command = "zigbee2mqtt/desk_lamp/set"
  private let state = "zigbee2mqtt/desk_lamp"

  private func lamp(confirm: String = "") throws -> (Bench, RecordingSubscriber) {
    let bench = try Bench.running(
      devices: """
        desk-lamp:
          profile: zigbee2mqtt/light
          topic: zigbee2mqtt/desk_lamp
          properties:
            brightness: {policy: {delay: 50ms, max_wait: 200ms}, confirm: {retries: 0\(confirm)}}

        """
    )
    let witness = try bench.witness()
    witness.publish(state, #"{"state":"OFF","brightness":100}"#)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "100"))
    return (bench, witness)
  }

  @Test func `fifty steps at once all end well`() throws {
    let (bench, witness) = try lamp()

    let runs = try (0..<50).map { _ in
      try SettleRun(["step", key, "1", "--wait=settled"], socketPath: bench.socketPath)
    }
    // A lamp that obeys.
    var answered = 0
    let end = EventLoop.now().advanced(by: .patience)
    while EventLoop.now() < end, !runs.allSatisfy({ $0.waitForExit(milliseconds: 1) != nil }) {
      let sent = witness.texts(on: command)
      for text in sent[answered...] { witness.publish(state, text) }
      answered = sent.count
    }

    for run in runs {
      #expect(run.waitForExit() == 0, "\(run.errors)")
      #expect(run.lines.last?.phase == "confirmed")
    }
    #expect(witness.waitFor("settle/desk-lamp/brightness", "150"))
  }

  @Test func `the end of somebody else's command counts`() throws {
    let (bench, witness) = try lamp(confirm: ", within: 300ms")
    let client = try bench.client()
    let run = try SettleRun(
      ["set", key, "40", "--wait=settled", "--now"],
      socketPath: bench.socketPath
    )
    #expect(witness.waitFor(command, #"{"brightness":40}"#))
    #expect(try client.ask(#"{"key":"\#(key)","set":60}"#)["phase"] == "accepted")

    // Nobody confirms the 60.
    #expect(run.waitForExit() == 1)
    #expect(run.errors.contains("\(key): failed: not confirmed"), "\(run.errors)")
    #expect(run.lines.last?.value == "60")
    let late = try SettleRun(["wait", key], socketPath: bench.socketPath)
    #expect(late.waitForExit() == 1)
    #expect(late.output.isEmpty)
    #expect(late.errors.hasPrefix("settle: \(key): failed: not confirmed"), "\(late.errors)")
  }

  @Test func `wait compares what was set last`() throws {
    let (bench, witness) = try lamp()
    func wait(_ words: String...) throws -> SettleRun {
      let run = try SettleRun(["wait", key] + words, socketPath: bench.socketPath)
      _ = run.waitForExit()
      return run
    }
    #expect(try wait().waitForExit() == 0)
    #expect(try wait("100").waitForExit() == 0)
    let other = try wait("50%")
    #expect(other.waitForExit() == 1)
    #expect(other.errors == "settle: \(key) is 100, not 127\n")
    #expect(try wait("1000").waitForExit() == 65)

    let running = try SettleRun(["wait", key, "50%"], socketPath: bench.socketPath)
    #expect(running.waitForExit() == 1)
    #expect(
      try bench.client().ask(#"{"key":"\#(key)","set":127,"now":true}"#)["phase"] == "accepted"
    )
    let last = try SettleRun(["wait", key, "127"], socketPath: bench.socketPath)
    #expect(witness.waitFor(command, #"{"brightness":127}"#))
    witness.publish(state, #"{"brightness":127}"#)
    #expect(last.waitForExit() == 0)
  }

  @Test func `a timeout says what it waits for`() throws {
    let (bench, witness) = try lamp()
    witness.publish(state + "/availability", #"{"state":"offline"}"#, retain: true)
    #expect(witness.waitFor { $0.contains { $0.topic == self.state + "/availability" } })

    let run = try SettleRun(
      ["set", key, "40", "--wait=settled", "--timeout", "400ms"],
      socketPath: bench.socketPath
    )
    #expect(run.waitForExit() == 75)
    let reason = "\(key) waits for an offline broker or device"
    let away = /the device desk-lamp is offline for [0-9.]+s/
    let waiting = Regex {
      "settle: waiting: "; away; "\n"
    }
    #expect(
      try Regex {
        waiting
        "settle: not settled within 400ms: \(reason); "
        away
        "\n"
      }.wholeMatch(in: run.errors) != nil,
      "\(run.errors)"
    )
    let change = try SettleRun(
      ["set", key, "41", "--wait", "--timeout", "400ms"],
      socketPath: bench.socketPath
    )
    #expect(change.waitForExit() == 75)
    #expect(
      try Regex {
        waiting
        "settle: no answer within 400ms; the last phase was accepted; "
        away
        "\n"
      }.wholeMatch(in: change.errors) != nil,
      "\(change.errors)"
    )
    let bare = try SettleRun(["wait", "brightness"], socketPath: bench.socketPath)
    #expect(bare.waitForExit() == 65)
    #expect(bare.errors.contains("did you mean '\(key)'?"), "\(bare.errors)")
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Configuration
import Control
import Devices
import FoundationEssentials
import JSON
import LastOut
import Simulation
import Testing
import Values

@Suite struct DemoTests {
  /// The written text.
  private final class Recorder {
    var text = ""
  }

  private func home() throws -> Registry {
    let folder = FileManager.default.temporaryDirectory.appending(
      path: "settle-home-\(UUID().uuidString)"
    )
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try DemoHome.deviceFile.write(
      to: folder.appending(path: "home.yaml"),
      atomically: false,
      encoding: .utf8
    )
    return try ConfigurationLoader.loadDevices(in: folder.path()).registry
  }

  private func index(_ key: String, _ registry: Registry) throws -> KeyIndex {
    try registry.index(of: key)
  }

  private func moment(_ milliseconds: Int) -> Moment {
    Moment(nanoseconds: UInt64(milliseconds) * 1_000_000)
  }

  @Test func `the home's devices accept every change of the standard script`() throws {
    let registry = try home()
    var simulator = TimelineSimulator(registry: registry)
    for request in DemoScript.standard.changes {
      let key = try registry.index(of: request.key)
      switch request.operation {
      case .step: continue  // The simulator has no state to add the step to.
      case .set(let value): _ = try registry[key].property.value(from: value)
      case .toggle, .scene, .cancel, .flush, .get, .pending, .watch, .describe, .record, .reload,
        .status, .log, .devices:
        Issue.record("\(request.operation) is not played")
      }
      try simulator.apply(request)
    }
    simulator.finish()
    let lamp = simulator.runs.filter { $0.key == "desk-lamp/brightness" }
    #expect(lamp.map(\.value) == [120, 200, 60])
    #expect(lamp.map(\.collapsed) == [99, 79, 0])
  }

  @Test func `the standard script lasts at most twelve seconds and is in order`() {
    let moments = DemoScript.standard.changes.compactMap(\.at)
    #expect(moments.count == DemoScript.standard.changes.count)
    #expect(zip(moments, moments.dropFirst()).allSatisfy { $0 <= $1 })
    #expect(moments.last.map { $0 < 12_000 } == true)
  }

  @Test func `without Settle the thermostat loses taps and ends at the wrong value`() throws {
    let replay = DirectReplay(
      .standard,
      registry: try home(),
      devices: DemoHome.devices()
    )
    #expect(replay.commands == DemoScript.standard.changes.count)
    #expect(replay.dropped == 7)
    #expect(
      replay.mismatches == [
        DirectReplay.Mismatch(
          key: "boiler/target_temperature",
          target: 25,
          actual: 23.5
        )
      ]
    )
  }

  @Test func `a script line without a time repeats the line before`() throws {
    let text = """
      {"key":"desk-lamp/brightness","set":50,"at":100}
      {"key":"boiler/target_temperature","step":-1}
      {"key":"*","flush":true,"at":200}
      """
    let script = try DemoScript(text: Array(text.utf8), registry: try home())
    #expect(script.changes.compactMap(\.at) == [100, 100, 200])
  }

  @Test(arguments: [
    (#"{"key":"desk-lamp/brightnes","set":1}"#, "did you mean 'brightness'?"),
    (#"{"key":"desk-lamp/power","set":true,"at":5}"#, "must not decrease"),
    (#"{"get":"*"}"#, "can be played"),
    ("{", "not JSON"),
  ])
  func `a line that cannot be played is reported`(
    line: String,
    message: String
  ) throws {
    let registry = try home()
    let text = #"{"key":"desk-lamp/power","toggle":true,"at":10}"# + "\n" + line
    let mistakes = #expect(throws: DemoScript.Mistakes.self) {
      try DemoScript(text: Array(text.utf8), registry: registry)
    }
    #expect(mistakes?.first.map(\.line) == [2])
    #expect(mistakes?.first.first?.message.contains(message) == true)
  }

  @Test func `all lines that cannot be played are counted and twenty are described`() throws {
    let registry = try home()
    let good = #"{"key":"desk-lamp/power","toggle":true}"#
    let lines = (1...50).map { $0.isMultiple(of: 2) ? "{" : good }
    let mistakes = try #require(
      #expect(throws: DemoScript.Mistakes.self) {
        try DemoScript(text: Array(lines.joined(separator: "\n").utf8), registry: registry)
      }
    )
    #expect(mistakes.count == 25)
    #expect(mistakes.first.map(\.line) == (1...20).map { $0 * 2 })
    let said = mistakes.description.split(separator: "\n")
    #expect(said.count == 21)
    #expect(said[0].hasPrefix("line 2: "))
    #expect(said[20] == "and 5 more")
  }

  @Test func `the ledger counts lateness from the deadline that the policy gives`() throws {
    let registry = try home()
    let lamp = try index("desk-lamp/brightness", registry)
    var ledger = DemoLedger(registry: registry)
    for at in [0, 100, 200] { ledger.change(lamp, at: moment(at)) }
    ledger.command(lamp, at: moment(503))
    #expect(ledger[lamp].worstLateness == .milliseconds(3))
    for at in stride(from: 1000, through: 3100, by: 100) { ledger.change(lamp, at: moment(at)) }
    ledger.command(lamp, at: moment(3007))  // max_wait: 2 s after the burst began
    #expect(ledger[lamp].worstLateness == .milliseconds(7))
    #expect(ledger[lamp].changes == 25)
    #expect(ledger[lamp].commands == 2)
  }

  @Test func `a value sent before its deadline has no lateness`() throws {
    let registry = try home()
    let stop = try index("desk-lamp/brightness", registry)
    var ledger = DemoLedger(registry: registry)
    ledger.change(stop, at: moment(0))
    ledger.command(stop, at: moment(1))
    #expect(ledger[stop].worstLateness == nil)
  }

  @Test func `a key agrees when the device reports the target`() throws {
    let registry = try home()
    let boiler = try index("boiler/target_temperature", registry)
    let stop = try index("hall-blind/command", registry)
    var ledger = DemoLedger(registry: registry)
    ledger.change(boiler, at: moment(0))
    ledger.target(boiler, 21.5)
    #expect(ledger.agrees(boiler) == false)
    ledger.report(topic: "heating/boiler", document: .object(["setpoint": 20]))
    #expect(ledger.agrees(boiler) == false)
    #expect(!ledger.isDone)
    ledger.report(topic: "heating/boiler", document: .object(["setpoint": 21.5]))
    #expect(ledger.agrees(boiler) == true)
    #expect(ledger.agrees(stop) == nil)
    #expect(ledger.isDone)
  }

  @Test func `nothing is settled while a change is still between the player and the gateway`()
    throws
  {
    let registry = try home()
    let name = "desk-lamp/power"
    let power = try index(name, registry)
    var ledger = DemoLedger(registry: registry)
    for at in 0..<3 { ledger.change(power, at: moment(at * 5)) }
    // Two toggles cancel each other out, and the third has not arrived.
    for phase in [Phase.accepted, .superseded, .accepted, .unchanged] {
      _ = ledger.event(EventObject(id: "1", key: name, phase: phase, value: true, at: "now"))
    }
    #expect(!ledger.isSettled)
    _ = ledger.event(EventObject(id: "3", key: name, phase: .accepted, value: true, at: "now"))
    #expect(ledger.isReceived && !ledger.isSettled)
    _ = ledger.event(EventObject(id: "3", key: name, phase: .confirmed, value: true, at: "now"))
    #expect(ledger.isSettled)
  }

  @Test func `the summary has one row per changed key`() throws {
    let registry = try home()
    let boiler = try index("boiler/target_temperature", registry)
    var ledger = DemoLedger(registry: registry)
    for at in 0..<9 { ledger.change(boiler, at: moment(at * 100)) }
    ledger.command(boiler, at: moment(1601))
    ledger.command(boiler, at: moment(2000))
    ledger.target(boiler, 21.5)
    ledger.report(topic: "heating/boiler", document: .object(["setpoint": 20]))
    #expect(
      DemoSummary.rows(of: ledger) == [
        ["boiler/target_temperature", "9", "2", "4.5:1", "400 ms", "21.5", "at 20"]
      ]
    )
  }

  @Test(arguments: [
    ([0], "█"), ([0, 10, 20, 150, 310], "█▃ ▃"), ([], ""), ([0, 1, 2, 3, 100], "█▂"),
  ])
  func `a sparkline has one bar per cell and a blank for none`(
    moments: [Int],
    bars: String
  ) {
    #expect(Sparkline.of(moments.map { moment($0) }) == bars)
  }

  @Test func `a sparkline never has more bars than its limit`() {
    let moments = (0..<500).map { moment($0 * 37) }
    #expect(Sparkline.of(moments, limit: 12).count == 12)
  }

  @Test(arguments: [(true, "\r\u{1B}[Kabc…\r\u{1B}[Kabcdefgh\n"), (false, "abcdefgh\n")])
  func `a status line is cut and replaced on a terminal and omitted elsewhere`(
    isInteractive: Bool,
    written: String
  ) {
    let output = Recorder()
    var screen = DemoScreen(isInteractive: isInteractive, hasColor: false, width: 5) {
      output.text += $0
    }
    screen.status([.init("abcdefgh", .cyan)])
    screen.line([.init("abcd"), .init("efgh", .red)])
    #expect(output.text == written)
  }
}

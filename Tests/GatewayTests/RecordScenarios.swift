// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// Changes are recorded, and replay identically.
@Suite(.blocking) struct RecordScenarios {
  /// One topic per key, so that what is published says which key it was.
  private static func devices(policy: String) -> String {
    """
    lamp:
      properties:
        brightness:
          {type: integer, range: [0, 254], policy: \(policy),
          command: {topic: out/lamp/brightness, payload: $value},
          state: {topic: lamp/state, value: /brightness}}
        power:
          {type: boolean, policy: \(policy), command: {topic: out/lamp/power, payload: $value},
          state: {topic: lamp/state, value: /power}}
        tone: {type: color, policy: \(policy), command: {topic: out/lamp/tone, payload: $value}}
    boiler:
      properties:
        target:
          {type: number, range: [5, 30], step: 0.5, policy: \(policy),
          command: {topic: out/boiler/target, payload: $value}}
        mode:
          {type: choice, values: [off, heat], urgent: [off], ends: [target], policy: \(policy),
          command: {topic: out/boiler/mode, payload: $value}}
    probe:
      properties:
        level: {type: number, policy: \(policy), command: {topic: probe, payload: $value}}

    """
  }
  private let inputs = """
    inputs: [{topic: knob, value: /action, map: {up: {key: lamp/brightness, step: 10}}}]
    """

  // MARK: - Playing

  private struct Play {
    let code: Int32?
    /// The values of each key, in order, as they are published.
    let values: [String: [String]]
    let errors: String
  }

  /// Plays a recording with the devices that it was made with.
  private func play(_ recording: [String], _ bench: Bench) throws -> Play {
    let names = ["in", "out", "err"].map { "\(bench.folder)/play.\($0)" }
    try TextFile.write(recording.map { "\($0)\n" }.joined(), to: names[0])
    let input = unsafe open(names[0], O_RDONLY | O_CLOEXEC)
    defer { close(input) }
    let process = try SpawnedProcess(
      arguments: [
        BuiltProgram.path("settle"), "simulate", "--devices", "\(bench.folder)/devices",
      ],
      input: input,
      output: .file(names[1]),
      errors: .file(names[2])
    )
    var code: Int32?
    if case .exited(let ending) = process.wait() { code = ending }
    var values: [String: [String]] = [:]
    for line in (TextFile.read(names[1]) ?? "").split(separator: "\n") {
      let run = try JSONParser.parse(String(line))
      let key = try #require(run["key"]?.string)
      let value = try #require(run["value"])
      values[key, default: []].append(value.string ?? JSONWriter.text(value))
    }
    return Play(code: code, values: values, errors: TextFile.read(names[2]) ?? "")
  }

  /// What devices were really sent, as ``Play/values``.
  private func published(_ messages: [RecordingSubscriber.Message]) -> [String: [String]] {
    var values: [String: [String]] = [:]
    for message in messages where message.topic.hasPrefix("out/") {
      values[String(message.topic.dropFirst(4)), default: []].append(message.text)
    }
    return values
  }

  // MARK: - Scenarios

  @Test func `changes of every surface are recorded in order and replay identically`() throws {
    let (bench, curl) = try Bench.serving(
      devices: Self.devices(policy: "{delay: 60s, max_wait: none}"),
      settings: inputs
    )
    let witness = try bench.witness()
    witness.publish("lamp/state", #"{"brightness":100,"power":true}"#, retain: true)
    #expect(witness.waitFor("settle/lamp/brightness", "100"))
    let client = try bench.client()
    let record = try RecordRun(bench, probing: client)

    let set = "settle/lamp/brightness/set"
    let surfaces: [(String, () throws -> Void)] = [
      (#""lamp/brightness","set":110,"source":"mqtt""#, { witness.publish(set, "110") }),
      (
        #""lamp/brightness","set":115,"source":"mqtt""#,
        { witness.publish("settle/lamp/brightness/step", "+5") }
      ),
      (
        #""lamp/power","set":false,"source":"mqtt""#,
        { witness.publish("settle/lamp/power/toggle", "") }
      ),
      (
        #""lamp/brightness","set":120,"source":"hall""#,
        { witness.publish(set, #"{"value":120,"source":"hall"}"#) }
      ),
      (
        #""lamp/brightness","set":130,"source":"input:knob""#,
        {
          witness.publish("knob", #"{"action":"up"}"#)
        }
      ),
      (
        #""lamp/brightness","flush":true,"source":"mqtt""#,
        { witness.publish("settle/lamp/brightness/flush", "") }
      ),
      (
        #""lamp/tone","set":{"h":30,"s":100},"source":"mqtt""#,
        { witness.publish("settle/lamp/set", #"{"tone":{"h":30,"s":100}}"#) }
      ),
      (
        #""boiler/target","set":21,"source":"socket""#,
        { _ = try client.ask(#"{"key":"boiler/target","set":21}"#) }
      ),
      (
        #""boiler/target","set":21.5,"source":"cli","now":true"#,
        { _ = try client.ask(#"{"key":"boiler/target","step":0.5,"now":true,"source":"cli"}"#) }
      ),
      (
        #""boiler/target","set":23,"source":"http""#,
        { _ = try curl.send("PUT", "/v1/devices/boiler/target", "23") }
      ),
      (
        #""boiler/target","set":24,"source":"http""#,
        { _ = try curl.send("POST", "/v1/devices/boiler/target/step", "1") }
      ),
      (
        #""boiler/target","cancel":true,"source":"http""#,
        { _ = try curl.send("POST", "/v1/cancel?key=boiler/*", "") }
      ),
      (
        #""boiler/target","set":25,"source":"socket""#,
        { _ = try client.ask(#"{"key":"boiler/target","set":25}"#) }
      ),
      // An urgent value: what it ends is not sent, here as there.
      (
        #""boiler/mode","set":"off","source":"mqtt""#,
        { witness.publish("settle/boiler/mode/set", "off") }
      ),
      (
        #""lamp/power","cancel":true,"source":"mqtt""#,
        { witness.publish("settle/lamp/power/cancel", "") }
      ),
      (#""lamp/brightness","set":7,"source":"mqtt""#, { witness.publish(set, "7") }),
    ]
    for (number, (change, act)) in surfaces.enumerated() {
      try act()
      let line = try #require(record.line(number), "\(change): \(record.errors)")
      #expect(line.contains(#","key":\#(change)}"#), "\(line)")
    }
    // What is refused or finds nothing is none.
    witness.publish(set, "1000")
    #expect(
      witness.waitFor {
        $0.contains { $0.topic == "settle/lamp/brightness/event" && $0.text.contains("rejected") }
      }
    )
    #expect(try client.ask(#"{"flush":"boiler/*","id":"f"}"#)["flushed"] == 0)
    #expect(try client.ask(#"{"cancel":"lamp/power","id":"c"}"#)["cancelled"] == 0)
    #expect(record.end(SIGINT) == 0)
    #expect(record.errors == "")
    #expect(record.lines.count == surfaces.count)

    // The last values leave with the gateway, as they do at the end of the timeline.
    try bench.running().signal(SIGTERM)
    #expect(try bench.running().waitForExit() == 0)
    #expect(witness.waitFor("out/lamp/brightness", "7"))
    #expect(witness.waitFor { $0.contains { $0.topic == "out/lamp/tone" } })
    let real = published(witness.messages)
    let played = try play(record.lines, bench)
    #expect(played.code == 0)
    #expect(played.errors == "")
    // A color leaves as its device wants it.
    #expect(played.values["lamp/tone"] == [#"{"h":30,"s":100}"#])
    #expect(real["lamp/tone"] == ["#ff8000"])
    let isOther = { (entry: (key: String, value: [String])) in entry.key != "lamp/tone" }
    #expect(played.values.filter(isOther) == real.filter(isOther))
    #expect(real["lamp/brightness"] == ["130", "7"])
    #expect(real["boiler/target"] == ["21.5"])
    #expect(real["boiler/mode"] == ["off"])
    #expect(real["lamp/power"] == nil)
  }

  @Test func `bursts that settle by themselves play to the same commands`() throws {
    let bench = try Bench.running(devices: Self.devices(policy: "{delay: 150ms, max_wait: none}"))
    let witness = try bench.witness()
    let client = try bench.client()
    let record = try RecordRun(bench, probing: client)

    for round in 1...3 {
      let lines = (1...40).map { #"{"key":"lamp/brightness","set":\#(round * 60 + $0)}"# + "\n" }
      client.send(bytes: Array(lines.joined().utf8))
      _ = try client.ask(#"{"key":"boiler/target","set":\#(10 + round)}"#)
      #expect(witness.waitFor("out/lamp/brightness", "\(round * 60 + 40)"))
    }
    #expect(witness.waitFor("out/boiler/target", "13"))
    #expect(record.line(122) != nil)
    #expect(record.end(SIGTERM) == 0)

    let played = try play(record.lines, bench)
    #expect(played.code == 0)
    #expect(played.values == published(witness.messages))
    #expect(played.values["lamp/brightness"] == ["100", "160", "220"])
    let times = try record.lines.map { try #require(try JSONParser.parse($0)["at"]?.double) }
    #expect(times == times.sorted())
  }

  @Test func `a step that waits for its device is recorded as the resulting value`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 60s, max_wait: none}"))
    let witness = try bench.witness()
    let client = try bench.client()
    client.send(#"{"record":"desk-lamp/*","id":"r"}"#)
    _ = try client.ask(#"{"get":"*","id":"there"}"#)

    client.send(#"{"key":"desk-lamp/brightness","step":5,"id":"s"}"#)
    #expect(try client.ask(#"{"pending":"*","id":"held"}"#)["id"] == "held")
    #expect(witness.waitFor("zigbee2mqtt/desk_lamp/get", DeviceText.lampRequest))
    witness.publish("zigbee2mqtt/desk_lamp", #"{"brightness":40}"#)

    let change = try client.next { $0["record"] == "r" }["change"]
    #expect(change?["set"] == 45)
    #expect(change?["source"] == "socket")
    #expect(change?["key"] == "desk-lamp/brightness")
  }

  @Test func `each recording has its pattern, its id and its own beginning`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(3, policy: "{delay: 60s}"))
    let early = try bench.client()
    early.send(#"{"record":"dev0/*","id":1}"#)
    early.send(#"{"key":"dev0/level","set":1}"#)
    let first = try early.next { $0["record"] == 1 }
    let client = try bench.client()
    client.send(#"{"record":"dev?/level","id":"all"}"#)
    client.send(#"{"record":"dev1/level"}"#)
    _ = try client.ask(#"{"record":"dev9/level","id":"none"}"#)
    early.send(#"{"key":"dev1/level","set":2}"#)
    early.send(#"{"key":"dev0/level","set":3}"#)

    let lines = try (0..<3).map { _ in try client.next() }
    #expect(lines.map { $0["record"] } == ["all", .null, "all"])
    #expect(lines.map { $0["change"]?["set"] } == [2, 2, 3])
    let second = try early.next { $0["record"] == 1 }
    #expect(first["change"]?["set"] == 1)
    #expect(second["change"]?["set"] == 3)
    let late = try #require(lines[2]["change"]?["at"]?.double)
    #expect(try #require(second["change"]?["at"]?.double) > late)
    #expect(late >= 0)
  }

  @Test func `an unknown key and a batch over HTTP cannot be recorded`() throws {
    let (bench, curl) = try Bench.serving(devices: DeviceText.levels(1, policy: "{delay: 60s}"))
    let client = try bench.client()
    let answer = try client.ask(#"{"record":"dev0/levle","id":"r"}"#)
    #expect(answer["error"]?["code"] == "unknown_key")
    #expect(answer["error"]?["message"]?.string?.contains("did you mean 'level'") == true)
    let lines = try curl.send("POST", "/v1/changes", #"{"record":"*"}"#).lines
    #expect(lines.first?["error"]?["code"] == "unsupported")
    let run = try SettleRun(["record", "dev0/levle"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 65)
    #expect(run.errors.contains("did you mean 'level'"))
  }

  @Test func `a recorder that does not read is dropped, the others go on`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(1, policy: "{delay: 60s}"))
    let keen = try bench.dropsWhoDoesNotRead(
      #"{"record":"*"}"#,
      times: 16,
      keen: #"{"record":"*","id":"k"}"#
    )
    #expect(try keen.next { $0["change"]?["set"] == 77777 }["record"] == "k")
  }

  @Test func `a recording reports the end of the gateway and keeps its lines`() throws {
    let bench = try Bench.running(devices: Self.devices(policy: "{delay: 20ms}"))
    let client = try bench.client()
    let record = try RecordRun(bench, probing: client)
    _ = try client.ask(#"{"key":"lamp/brightness","set":3}"#)
    #expect(record.line(0) != nil)

    try bench.running().signal(SIGTERM)

    #expect(record.ending() == 69)
    #expect(record.errors.contains("the gateway closed the connection; "))
    #expect(record.errors.contains("recorded"))
  }
}

/// A running `settle record` that has started recording.
private final class RecordRun {
  private let process: SpawnedProcess
  private let output: LineReader
  private let errorOutput: LineReader

  /// Returns when the gateway records for it; whatever `probe/level` was set to for that is not
  /// among its lines.
  init(_ bench: Bench, probing client: ControlClient) throws {
    output = try LineReader()
    errorOutput = try LineReader()
    process = try SpawnedProcess(
      arguments: [BuiltProgram.path("settle"), "record", "--socket", bench.socketPath],
      output: .descriptor(output.writer),
      errors: .descriptor(errorOutput.writer)
    )
    output.closeWriter()
    errorOutput.closeWriter()
    for number in 1...200 {
      _ = try client.ask(#"{"key":"probe/level","set":\#(number),"source":"probe"}"#)
      _ = try client.ask(#"{"cancel":"probe/level","source":"probe","id":"probed"}"#)
      let hasBegun = output.waitFor(within: .milliseconds(50)) { lines in
        lines.contains { $0.contains(#""cancel":true"#) } ? true : nil
      }
      if hasBegun ?? false { return }
    }
    throw GatewayProcess.Failure(description: "nothing is recorded: \(errors)")
  }

  deinit {
    process.signal(SIGKILL)
    process.wait(milliseconds: 5000)
  }

  /// What was recorded so far, but for the probes.
  var lines: [String] { Self.withoutProbes(output.lines) }

  var errors: String {
    errorOutput.readAvailable()
    return errorOutput.lines.joined(separator: "\n")
  }

  /// Waits for a line, counted from 0.
  func line(_ number: Int) -> String? {
    output.waitFor(within: .patience) { lines in
      let found = Self.withoutProbes(lines)
      return found.count > number ? found[number] : nil
    }
  }

  /// Ends it with a signal; its exit code, `nil` if it does not end.
  func end(_ signal: Int32) -> Int32? {
    process.signal(signal)
    return ending()
  }

  /// Waits for the end: the exit code.
  func ending() -> Int32? {
    guard case .exited(let code) = process.wait() else { return nil }
    output.readAvailable()
    return code
  }

  private static func withoutProbes(_ lines: [String]) -> [String] {
    lines.filter { !$0.contains(#""source":"probe""#) }
  }
}

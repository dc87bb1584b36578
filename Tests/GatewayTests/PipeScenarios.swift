// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// `settle pipe`, the program itself: with a running gateway and without one.
@Suite(.blocking) struct PipeScenarios {
  private let slow = "{delay: 60s, max_wait: none}"

  /// What a pipe printed, and how it ended.
  private struct Outcome {
    let code: Int32?
    let results: [JSONValue]
    let errors: String
  }

  private func pipe(
    _ input: String,
    _ arguments: [String],
    in folder: String
  ) throws -> Outcome {
    let names = ["in", "out", "err"].map { "\(folder)/pipe.\($0)" }
    defer { for name in names { unsafe unlink(name) } }
    for name in names { unsafe unlink(name) }
    try TextFile.write(input, to: names[0])
    let descriptor = unsafe open(names[0], O_RDONLY | O_CLOEXEC)
    defer { close(descriptor) }
    let process = try SpawnedProcess(
      arguments: [BuiltProgram.path("settle"), "pipe"] + arguments,
      input: descriptor,
      output: .file(names[1]),
      errors: .file(names[2])
    )
    var code: Int32?
    if case .exited(let exitCode) = process.wait() { code = exitCode }
    if code == nil { process.signal(SIGKILL) }
    return Outcome(
      code: code,
      results: try (TextFile.read(names[1]) ?? "").split(separator: "\n").map {
        try JSONParser.parse(Array($0.utf8).span)
      },
      errors: TextFile.read(names[2]) ?? ""
    )
  }

  private func steps(_ count: Int) -> String {
    #"{"key":"dev0/level","set":0}"# + "\n"
      + String(repeating: #"{"key":"dev0/level","step":1}"# + "\n", count: count)
  }

  @Test(arguments: [false, true])
  func `thousands of steps become one command at the end of the input`(alone: Bool) throws {
    let bench = try Bench(devices: DeviceText.levels(2, policy: slow))
    try bench.broker.start()
    let witness = try bench.witness()
    if !alone { try bench.startGateway() }
    let outcome = try pipe(
      steps(5000),
      alone
        ? ["--standalone", "--config", bench.folder + "/settle.yaml"]
        : ["--socket", bench.socketPath],
      in: bench.folder
    )
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.results.count == 5001)
    #expect(outcome.results.allSatisfy { $0["phase"] == "accepted" && $0["source"] == "pipe" })
    #expect(outcome.results.last?["value"] == 5000)
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":5000}"#])
  }

  @Test func `a line that sets several properties has an answer for each`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: slow))
    let lines = [
      #"{"key":"desk-lamp","set":{"brightness":10,"power":"on","transition":1}}"#,
      #"{"key":"desk-lamp","set":{"brightness":1000}}"#,
      #"{"key":"desk-lamp/color_temp","set":300}"#,
    ]
    let outcome = try pipe(
      lines.map { $0 + "\n" }.joined(),
      ["--socket", bench.socketPath],
      in: bench.folder
    )
    #expect(outcome.code == 65, "\(outcome.errors)")
    #expect(outcome.results.map { $0["line"] } == [1, 1, 2, 3])
    #expect(outcome.results.map { $0["key"] }.contains("desk-lamp/power"))
    #expect(
      outcome.results.map { $0["phase"] } == ["accepted", "accepted", "rejected", "accepted"]
    )
  }

  @Test func `a standalone pipe leaves a gateway with the same settings alone`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(2, policy: slow))
    let witness = try bench.witness()
    let outcome = try pipe(
      steps(3),
      ["--standalone", "--config", bench.folder + "/settle.yaml"],
      in: bench.folder
    )
    #expect(outcome.code == 0, "\(outcome.errors)")
    #expect(outcome.errors.isEmpty)
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":3}"#])

    // Had it lost its connection, this would wait for the next one.
    let client = try bench.client()
    client.send(#"{"key":"dev1/level","set":9,"now":true,"wait":"sent"}"#)
    #expect(try client.next { $0["phase"] == "sent" }["value"] == 9)
    #expect(witness.waitFor("cmd/dev1", #"{"v":9}"#))
    #expect(try bench.running().lines(containing: "No connection").isEmpty)
    #expect(witness.texts(on: "settle/status") == ["online"])
  }

  @Test func `a standalone pipe does nothing that a gateway beside it does too`() throws {
    let bench = try Bench(
      devices: DeviceText.levels(2, policy: "{delay: 0}"),
      settings: """
        routes: [{from: in, to: out, policy: none}]
        inputs: [{topic: knob, value: "", map: {up: {key: dev1/level, step: 1}}}]
        discovery: {prefix: homeassistant}
        """
    )
    try bench.broker.start()
    let witness = try bench.witness()
    var ends: [Int32] = [-1, -1]
    try #require(unsafe Glibc.pipe(&ends) == 0)
    let (reader, writer) = (ends[0], ends[1])
    let process = try SpawnedProcess(
      arguments: [
        BuiltProgram.path("settle"), "pipe", "--standalone", "--config",
        bench.folder + "/settle.yaml",
      ],
      input: reader,
      output: .discarded,
      errors: .discarded
    )
    close(reader)
    let line = Array((#"{"key":"dev0/level","set":1}"# + "\n").utf8)
    #expect(unsafe write(writer, line, line.count) == line.count)
    #expect(witness.waitFor("cmd/dev0", #"{"v":1}"#))

    witness.publish("settle/dev0/level/set", "50")
    witness.publish("knob", "up")
    witness.publish("in", "x")
    #expect(unsafe write(writer, line, line.count) == line.count)
    close(writer)
    #expect(process.wait() == .exited(code: 0))

    #expect(witness.texts(on: "cmd/dev0") == [#"{"v":1}"#, #"{"v":1}"#])
    #expect(witness.messages.allSatisfy { !$0.topic.hasPrefix("homeassistant/") })
    #expect(witness.texts(on: "cmd/dev1").isEmpty)
    #expect(witness.texts(on: "out").isEmpty)
    #expect(witness.texts(on: "settle/status").isEmpty)
  }

  @Test func `bad lines are reported with number and id, and the others are sent`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(2, policy: slow))
    let outcome = try pipe(
      """
      {"key":"dev0/level","set":4,"id":"first"}
      not json

      {"key":"dev0/volume","set":4,"id":"unknown"}
      {"key":"dev0/level","set":-1,"id":"range"}
      {"key":"dev1/level","set":5,"id":"wait","wait":"confirmed"}
      {"key":"dev1/level","set":6,"id":"last","wait":"sent"}
      """,
      ["--socket", bench.socketPath],
      in: bench.folder
    )
    #expect(outcome.code == 65)
    #expect(outcome.errors == "settle: 5 changes, 2 sent, 4 refused\n")
    func phases(_ id: JSONValue) -> [JSONValue?] {
      outcome.results.filter { $0["id"] == id }.map { $0["phase"] ?? $0["error"]?["code"] }
    }
    #expect(phases("first") == ["accepted"])
    #expect(phases("unknown") == ["rejected"])
    #expect(phases("range") == ["rejected"])
    #expect(phases("wait") == ["cannot_confirm"])
    #expect(phases("last") == ["accepted", "sending", "sent"])
    let lines = outcome.results.compactMap { $0["error"]?["line"] }
    #expect(lines.map { JSONWriter.text($0) }.sorted() == ["2", "6"])
    #expect(try bench.witness().texts(on: "cmd/dev0", count: 1) == [#"{"v":4}"#])
    #expect(try bench.witness().texts(on: "cmd/dev1", count: 1) == [#"{"v":6}"#])
  }

  @Test func `a pipe sets scenes, and waits until a key has settled`() throws {
    let state = "state: {topic: lamp/state}, confirm: {within: 300ms}"
    let bench = try Bench.running(
      devices: DeviceText.levels(2, policy: slow) + """
        lamp:
          properties:
            level: {type: integer, range: [0, 9], command: {topic: lamp}, \(state)}
        scenes:
          evening: {dev0: {level: 4}, dev1: {level: 5}}

        """
    )
    let outcome = try pipe(
      """
      {"scene":"evening","wait":"confirmed"}
      {"scene":"morning"}
      {"key":"lamp/level","set":1,"wait":"settled"}
      {"key":"lamp/level","set":2,"wait":"settled"}
      {"key":"nope/level","flush":true}
      """,
      ["--socket", bench.socketPath],
      in: bench.folder
    )
    #expect(outcome.code == 1)
    #expect(outcome.errors == "settle: 5 changes, 3 sent, 1 failed, 2 refused\n")
    func phases(_ line: JSONValue) -> [String] {
      outcome.results.filter { $0["line"] == line }
        .map { ($0["phase"] ?? $0["error"]?["code"])?.string ?? "" }
    }
    #expect(phases(1).sorted() == ["accepted", "accepted", "sending", "sending", "sent", "sent"])
    #expect(phases(2) == ["unknown_key"])
    // Both changes end with the newer command, which nobody confirms.
    #expect(phases(3) == ["accepted", "superseded", "failed"])
    #expect(phases(4) == ["accepted", "sending", "sent", "failed"])
    #expect(phases(5) == ["unknown_key"])
    #expect(try bench.witness().texts(on: "cmd/dev1", count: 1) == [#"{"v":5}"#])
  }

  @Test func `a pipe whose commands cannot be sent ends at its timeout and reports it`() throws {
    let bench = try Bench(devices: DeviceText.levels(2, policy: slow))
    try bench.launchGateway()
    let outcome = try pipe(
      steps(10),
      ["--socket", bench.socketPath, "--timeout", "200ms"],
      in: bench.folder
    )
    #expect(outcome.code == 75)
    #expect(outcome.errors == "settle: 11 changes, 0 sent; 1 were not sent in time\n")
  }

  @Test func `without a gateway one line says how to start one`() throws {
    let folder = try TemporaryFolder.make("settle-pipe")
    defer { TemporaryFolder.remove(folder) }
    let outcome = try pipe(steps(1), ["--socket", folder + "/none.sock"], in: folder)
    #expect(outcome.code == 69)
    #expect(outcome.results.isEmpty)
    #expect(outcome.errors.contains(#"start it with "settle run""#))
    #expect(outcome.errors.split(separator: "\n").count == 1)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import JSON
import Operations
import TestBroker
import Testing

/// Read-only properties and areas, on every surface.
@Suite(.blocking) struct ReadOnlyScenarios {
  private static let refusal = "'temperature' is read-only: only the device changes it"
  private static let devices = """
    hall-sensor:
      name: Hall sensor
      area: Living room
      panel: false
      properties:
        temperature:
          type: number
          unit: °C
          state: {topic: hall, value: /temperature, get: {topic: hall/get}}
        contact: {type: boolean, class: door, on: false, off: true, state: {topic: hall, value: /contact}}
    fan:
      class: fan
      properties:
        power: {type: boolean, command: {topic: fan/set}, state: {topic: fan}}
        watts: {type: integer, range: [0, 9], state: {topic: watts}}

    """

  private func reported(
    _ settings: String = ""
  ) throws -> (Bench, Curl, RecordingSubscriber) {
    let (bench, curl) = try Bench.serving(devices: Self.devices, settings: settings)
    let witness = try bench.witness()
    #expect(witness.waitFor("hall/get", ""))
    witness.publish("hall", #"{"temperature":21.5,"contact":false}"#)
    #expect(witness.waitFor("settle/hall-sensor/temperature", "21.5"))
    return (bench, curl, witness)
  }

  @Test func `reports are shown everywhere`() throws {
    let (bench, curl, witness) = try reported()

    #expect(witness.waitFor("settle/hall-sensor/contact", "true"))
    #expect(witness.waitFor("settle/hall-sensor", #"{"temperature":21.5,"contact":true}"#))
    let device = try curl("/v1/devices/hall-sensor").json
    #expect(device["area"] == "Living room" && device["panel"] == false)
    let property = try curl("/v1/devices/hall-sensor/temperature").json
    #expect(property["read_only"] == true && property["can_confirm"] == false)
    #expect(property["actual"] == 21.5 && property["target"] == 21.5)
    #expect(property["class"] == nil && property["reversed"] == nil)
    let contact = try curl("/v1/devices/hall-sensor/contact").json
    #expect(contact["class"] == "door" && contact["reversed"] == false)
    let fan = try curl("/v1/devices/fan").json
    #expect(fan["class"] == "fan" && device["class"] == nil)
    #expect(fan["properties"]?["watts"]?["state_topic"] == "watts")
    #expect(contact["state_topic"] == nil)
    #expect(fan["area"] == .null && fan["panel"] == true)
    #expect(fan["properties"]?["power"]?["read_only"] == false)
    let get = try SettleRun(["get", "hall-sensor/*"], socketPath: bench.socketPath)
    #expect(get.waitForExit() == 0)
    #expect(get.output.contains("hall-sensor/temperature\t21.5\t21.5\t-\t"), "\(get.output)")
    let describe = try SettleRun(
      ["describe", "hall-sensor/temperature"],
      socketPath: bench.socketPath
    )
    #expect(describe.waitForExit() == 0)
    #expect(describe.output.contains("read-only"))
    #expect(!describe.output.contains("settles"))
    // A report outside the range counts.
    witness.publish("watts", "40")
    #expect(witness.waitFor("settle/fan/watts", "40"))
  }

  @Test func `what devices reported is remembered, with its age`() throws {
    let (bench, curl, witness) = try reported()
    defer { withExtendedLifetime(bench) {} }
    witness.publish("hall", #"{"temperature":22.1,"contact":true}"#)
    #expect(witness.waitFor("settle/hall-sensor/temperature", "22.1"))
    witness.publish("hall", #"{"temperature":22.1,"contact":true}"#)
    witness.publish("watts", "4")
    #expect(witness.waitFor("settle/fan/watts", "4"))

    let history = try curl("/v1/history?key=hall-sensor/temperature").json
    #expect(history["key"] == "hall-sensor/temperature")
    #expect(values(history) == [21.5, 22.1])
    #expect(values(try curl("/v1/history?key=hall-sensor/contact").json) == [true, false])
    #expect(values(try curl("/v1/history?key=fan/watts").json) == [4])
    #expect(values(try curl("/v1/history?key=fan/power").json) == [])
    let both = try curl(
      "/v1/history?key=hall-sensor/contact&key=fan/power&key=hall-sensor/contact"
    )
    #expect(both.json["keys"]?.members?.map(\.name) == ["hall-sensor/contact", "fan/power"])
    #expect(both.json["keys"]?["hall-sensor/contact"]?.elements?.count == 2)
    #expect(both.json["ages_ms"]?.members?.map(\.name) == ["hall-sensor/contact"])
    guard case .array(let points)? = history["points"], case .integer(let age)? = history["age_ms"],
      case .integer(let first)? = points.first?["age_ms"],
      case .integer(let last)? = points.last?["age_ms"]
    else {
      Issue.record("no ages")
      return
    }
    #expect(first >= last && last >= age && age >= 0 && first < 60_000)
  }

  @Test func `what devices reported outlives a gateway with a journal`() throws {
    let (bench, curl, witness) = try reported("journal: {path: journal.db}")
    witness.publish("watts", "4")
    #expect(witness.waitFor("settle/fan/watts", "4"))
    #expect(values(try curl("/v1/history?key=fan/watts").json) == [4])

    try bench.stop()
    try bench.startGateway()
    let again = Curl(port: try bench.running().httpPort())
    let kept = try again("/v1/history?key=fan/watts").json
    #expect(values(kept) == [4])
    #expect(kept["age_ms"] == nil)
    #expect(values(try again("/v1/history?key=hall-sensor/contact").json) == [true])

    try bench.stop()
    try TextFile.write("{", to: "\(bench.folder)/history.json")
    try bench.startGateway()
    let damaged = Curl(port: try bench.running().httpPort())
    #expect(values(try damaged("/v1/history?key=fan/watts").json) == [])
    #expect(TextFile.read("\(bench.folder)/history.json.damaged") == "{")
  }

  private func values(_ history: JSONValue) -> [JSONValue?] {
    guard case .array(let points)? = history["points"] else { return [] }
    return points.map { $0["value"] }
  }

  @Test(arguments: [
    ["set", "hall-sensor/temperature", "20"], ["step", "hall-sensor/temperature", "+1"],
    ["set", "hall-sensor", "temperature=20"],
    ["set", "hall-sensor/temperature", "20", "--dry-run"],
  ])
  func `a change on the command line is refused`(arguments: [String]) throws {
    let (bench, _, witness) = try reported()
    let run = try SettleRun(arguments, socketPath: bench.socketPath)
    #expect(run.waitForExit() == 65)
    #expect(run.errors.contains(Self.refusal), "\(run.errors)")
    #expect(witness.texts(on: "settle/hall-sensor/temperature") == ["21.5"])
  }

  @Test func `a change over HTTP, MQTT or the socket is refused`() throws {
    let (bench, curl, witness) = try reported()
    let path = "/v1/devices/hall-sensor"

    for answer in [
      try curl.send("PUT", path + "/temperature", "20"),
      try curl.send("POST", path + "/temperature/step", "1"),
      try curl.send("POST", path + "/contact/toggle", ""),
      try curl.send("PUT", path, #"{"temperature":20}"#),
    ] {
      #expect(answer.status == 422, "\(answer.text)")
      #expect(answer.json["detail"]?.string?.contains("is read-only") == true, "\(answer.text)")
    }
    let reply = try bench.client().ask(#"{"key":"hall-sensor/contact","toggle":true}"#)
    #expect(reply["phase"] == "rejected")
    #expect(reply["reason"] == "'contact' is read-only: only the device changes it")
    witness.publish("settle/hall-sensor/temperature/set", "20")
    #expect(
      witness.waitFor { messages in
        messages.contains {
          $0.topic == "settle/hall-sensor/temperature/event" && $0.text.contains("rejected")
        }
      }
    )
    let flushed = try bench.client().ask(#"{"key":"hall-sensor/temperature","flush":true}"#)
    #expect(flushed["error"] == nil, "\(flushed)")
    #expect(witness.texts(on: "settle/hall-sensor/temperature") == ["21.5"])
  }

  @Test(arguments: [
    ("Living room", ["hall-sensor"], ""), ("living-room", ["hall-sensor"], ""),
    ("livng room", [], "no device is in 'livng room'; did you mean 'Living room'?"),
    ("garage", [], "no device is in 'garage'; areas: Living room"),
  ])
  func `devices lists those of an area`(area: String, found: [String], error: String) throws {
    let bench = try Bench.running(devices: Self.devices)
    let run = try SettleRun(["devices", "--area", area], socketPath: bench.socketPath)
    #expect(run.waitForExit() == (error.isEmpty ? 0 : 65))
    #expect(run.errors.contains(error), "\(run.errors)")
    let lines = run.output.split(separator: "\n")
    #expect(lines.map { String($0.prefix { $0 != "\t" }) } == found)
    #expect(lines.allSatisfy { $0.hasSuffix("\tLiving room") })
  }

  @Test func `completion offers areas as words, and only what can be set`() throws {
    let bench = try Bench.running(devices: Self.devices)
    func words(_ arguments: String...) throws -> [String] {
      let run = try SettleRun(["completions"] + arguments, socketPath: bench.socketPath)
      #expect(run.waitForExit() == 0)
      return run.output.split(separator: "\n").map(String.init)
    }
    #expect(try words("--keys", "area") == ["living-room"])
    #expect(try words("--keys", "set") == ["fan/power", "fan"])
    #expect(try words("--keys", "step") == [])
    #expect(try words("--keys", "any").contains("fan/watts"))
    #expect(try words("--values", "fan") == ["power="])
  }
}

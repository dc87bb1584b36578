// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import TestBroker
import Testing

/// Several properties of a device at one instant: on the command line, the socket, pipes and HTTP,
/// as MQTT has it.
@Suite(.blocking) struct DeviceSetScenarios {
  private let command = "zigbee2mqtt/desk_lamp/set"
  private let state = "zigbee2mqtt/desk_lamp"
  private static let devices = DeviceText.lamp(policy: "{delay: 50ms, max_wait: none}")

  private func lamp() throws -> (Bench, RecordingSubscriber) {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    witness.publish(state, #"{"state":"OFF","brightness":100}"#)
    #expect(witness.waitFor("settle/desk-lamp/brightness", "100"))
    return (bench, witness)
  }

  @Test func `set with a device is one message, and waits for every property`() throws {
    let (bench, witness) = try lamp()

    let run = try SettleRun(
      ["set", "desk-lamp", "brightness=40", "power=on", "transition=2", "--wait", "--id", "x"],
      socketPath: bench.socketPath
    )

    #expect(witness.waitFor { $0.contains { $0.topic == self.command } })
    let sent = try #require(witness.texts(on: command).first.map { try JSONParser.parse($0) })
    #expect(sent["brightness"] == 40 && sent["state"] == "ON" && sent["transition"] == 2)
    witness.publish(state, #"{"state":"ON","brightness":40}"#)
    #expect(run.waitForExit() == 0)
    #expect(run.lines.filter { $0.phase == "accepted" }.map(\.value) == ["40", "true"])
    #expect(run.lines.count { $0.phase == "confirmed" } == 2)
    #expect(run.errors.isEmpty, "\(run.errors)")
    #expect(witness.texts(on: command).count == 1)
  }

  @Test(arguments: [
    (["brightness=400", "power=on"], "desk-lamp: brightness: 400 is outside 0 to 254"),
    (["power=on", "brightnes=4"], "desk-lamp: device 'desk-lamp' has no property 'brightnes'"),
    (["transition=2"], "desk-lamp: found options alone, expected at least one property"),
  ])
  func `one mistake rejects the whole set`(words: [String], error: String) throws {
    let (bench, witness) = try lamp()
    let watcher = try bench.client()
    watcher.send(#"{"watch":"*"}"#)
    _ = try watcher.ask(#"{"pending":"?"}"#)

    let run = try SettleRun(["set", "desk-lamp"] + words, socketPath: bench.socketPath)

    #expect(run.waitForExit() == 65)
    #expect(run.errors.contains(error), "\(run.errors)")
    #expect(try watcher.next()["event"]?["phase"] == "rejected")
    #expect(try bench.client().ask(#"{"pending":"*"}"#)["pending"] == [])
    #expect(witness.texts(on: command).isEmpty)
  }

  @Test func `each property has an answer that says how many there are`() throws {
    let (bench, _) = try lamp()
    let client = try bench.client()

    client.send(#"{"key":"desk-lamp","set":{"brightness":"50%","power":true},"id":7,"now":true}"#)
    let answers = try [client.next(), client.next()]

    #expect(
      answers.compactMap { $0["key"]?.string } == ["desk-lamp/brightness", "desk-lamp/power"]
    )
    #expect(answers.allSatisfy { $0["of"] == 2 && $0["id"] == 7 && $0["phase"] == "accepted" })
    #expect(answers.first?["value"] == 127)
    let refused = try client.ask(#"{"key":"desk-lamp","set":{"brightness":-1},"id":8}"#)
    #expect(refused["phase"] == "rejected" && refused["key"] == "desk-lamp" && refused["id"] == 8)
    let missing = try client.ask(#"{"key":"desk-lmp","set":{"brightness":1}}"#)
    #expect(missing["reason"] == "no device 'desk-lmp'; did you mean 'desk-lamp'?")
    let plain = try client.ask(#"{"key":"desk-lamp","set":40}"#)
    #expect(plain["error"]?["code"] == "bad_key")
  }

  @Test func `HTTP answers with one event for each property`() throws {
    let (bench, curl) = try Bench.serving(devices: Self.devices)
    let witness = try bench.witness()
    let path = "/v1/devices/desk-lamp"

    let accepted = try curl.send("PUT", path, #"{"brightness":40,"power":true,"transition":2}"#)
    #expect(accepted.status == 202)
    #expect(Self.phases(accepted) == ["accepted", "accepted"])
    let sent = try curl.send(
      "PUT",
      path + "?wait=sent",
      #"{"set":{"brightness":41,"power":false},"id":"mine","now":true}"#
    )
    #expect(sent.status == 200)
    #expect(Self.phases(sent) == ["sent", "sent"])
    #expect(sent.json["events"].map { JSONWriter.text($0) }?.contains("mine") == true)
    #expect(witness.texts(on: command).count >= 1)

    let bad = try curl.send("PUT", path, #"{"brightness":400,"power":true}"#)
    #expect(bad.status == 422)
    #expect(bad.json["code"] == "bad_value" && bad.json["key"] == "desk-lamp/brightness")
    #expect(try curl.send("PUT", path, "40").status == 422)
    #expect(try curl.send("PUT", path, "{}").status == 422)
    #expect(try curl.send("PUT", "/v1/devices/none", #"{"a":1}"#).status == 404)
    #expect(try curl.send("PUT", path, #"{"set":{"power":true},"wiat":1}"#).status == 422)
    let unknown = try curl.send("PUT", path, #"{"effect":"blink"}"#)
    #expect(unknown.status == 404 && unknown.json["code"] == "unknown_key")
  }

  private static func phases(_ answer: Answer) -> [String] {
    guard case .array(let events) = answer.json["events"] else { return [] }
    return events.compactMap { $0["phase"]?.string }
  }
}

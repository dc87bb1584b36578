// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import TestBroker
import Testing

/// Groups and scenes with a real broker, on every surface.
@Suite(.blocking) struct GroupScenarios {
  private static func lamp(_ id: String) -> String {
    """
    \(id):
      properties:
        level:
          type: number
          range: [0, 100]
          policy: {delay: 50ms, max_wait: none}
          command: {topic: cmd/\(id), payload: $value}
          state: {topic: state/\(id)}
          confirm: {within: 1s}

    """
  }

  private static let devices =
    lamp("desk") + lamp("kitchen-a") + lamp("kitchen-b")
      + """
      groups:
        down: {name: Downstairs, members: [desk, "kitchen-*"]}
      scenes:
        evening: {desk: {level: 80}, kitchen-a: {level: 20}}

      """
  private static let lamps = ["desk", "kitchen-a", "kitchen-b"]

  private static func confirm(_ lamps: [String], _ value: String, by witness: RecordingSubscriber) {
    for lamp in lamps { witness.publish("state/\(lamp)", value) }
  }

  private static func isConfirmed(_ event: String) -> Bool {
    event.contains(#""phase":"confirmed""#)
  }

  @Test func `a change of a group is one command for each member, confirmed when all are`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    let run = try SettleRun(
      ["set", "down/level", "40", "--wait", "--id", "x"],
      socketPath: bench.socketPath
    )
    for lamp in Self.lamps { #expect(witness.waitFor("cmd/\(lamp)", "40")) }
    Self.confirm(["desk", "kitchen-a"], "40", by: witness)
    for lamp in ["desk", "kitchen-a"] {
      #expect(
        witness.waitFor {
          $0.contains { $0.topic == "settle/\(lamp)/level/event" && Self.isConfirmed($0.text) }
        }
      )
    }
    #expect(!witness.texts(on: "settle/down/level/event").contains(where: Self.isConfirmed))

    Self.confirm(["kitchen-b"], "40", by: witness)

    #expect(run.waitForExit() == 0, "\(run.errors)")
    #expect(run.lines.last?.phase == "confirmed")
    #expect(
      witness.waitFor {
        $0.contains { $0.topic == "settle/down/level/event" && Self.isConfirmed($0.text) }
      }
    )
    let events = witness.texts(on: "settle/desk/level/event")
    #expect(events.contains { Self.isConfirmed($0) && $0.contains(#""group":"down""#) })
    #expect(events.contains { $0.contains(#""id":"x""#) })
  }

  @Test func `messages that come quickly are collapsed, and a failure names who is missing`() throws
  {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    for value in 1...9 { witness.publish("settle/down/level/set", "\(value)0") }
    for lamp in Self.lamps { #expect(witness.waitFor("cmd/\(lamp)", "90")) }
    Self.confirm(["desk", "kitchen-b"], "90", by: witness)

    #expect(
      witness.waitFor {
        $0.contains { message in
          message.topic == "settle/down/level/event"
            && message.text.contains(#""phase":"failed""#)
            && message.text.contains("kitchen-a: not confirmed within 1s")
        }
      }
    )
    #expect(witness.texts(on: "cmd/desk").last == "90")
    #expect(witness.texts(on: "cmd/desk").count < 9)
  }

  @Test func `a group is described like a device`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let client = try bench.client()
    let rows = try client.ask(#"{"devices":"down"}"#)["devices"]
    guard case .array(let found) = rows, let row = found.first else {
      Issue.record("no row")
      return
    }
    #expect(row["name"] == "Downstairs")
    #expect(row["members"] == .array(Self.lamps.map { .string($0) }))
    let run = try SettleRun(["describe", "down/level"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 0, "\(run.errors)")
    #expect(run.output.contains("desk/level, kitchen-a/level, kitchen-b/level"), "\(run.output)")
  }

  @Test func `a scene sets its values, and each has an answer`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    let run = try SettleRun(["scene", "evening", "--wait"], socketPath: bench.socketPath)
    #expect(witness.waitFor("cmd/desk", "80"))
    #expect(witness.waitFor("cmd/kitchen-a", "20"))
    Self.confirm(["desk"], "80", by: witness)
    Self.confirm(["kitchen-a"], "20", by: witness)
    #expect(run.waitForExit() == 0, "\(run.errors)")
    #expect(run.lines.count { $0.phase == "confirmed" } == 2)
    #expect(witness.texts(on: "cmd/kitchen-b").isEmpty)

    let unknown = try SettleRun(["scene", "evning"], socketPath: bench.socketPath)
    #expect(unknown.waitForExit() == 65)
    #expect(unknown.errors.contains("no scene 'evning'; did you mean 'evening'?"))
    let names = try SettleRun(["completions", "--keys", "scene"], socketPath: bench.socketPath)
    #expect(names.waitForExit() == 0)
    #expect(names.output == "evening\n")
  }

  @Test func `a message on the topic of a scene sets it`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let witness = try bench.witness()
    witness.publish("settle/scene/evening/set", "go")
    #expect(witness.waitFor("cmd/desk", "80"))
    #expect(witness.waitFor("cmd/kitchen-a", "20"))

    let payload = Array("go".utf8)
    witness.publish("settle/scene/evening/set", payload, responseTopic: "settle/reply/y")
    Self.confirm(["desk"], "80", by: witness)
    Self.confirm(["kitchen-a"], "20", by: witness)
    #expect(witness.waitFor { $0.count { $0.topic == "settle/reply/y" } == 2 })

    witness.publish("settle/scene/evning/set", payload, responseTopic: "settle/reply/x")
    #expect(
      witness.waitFor {
        $0.contains { $0.topic == "settle/reply/x" && $0.text.contains("no scene 'evning'") }
      }
    )
  }

  @Test func `HTTP answers a scene with one event for each value`() throws {
    let (bench, curl) = try Bench.serving(devices: Self.devices)
    let witness = try bench.witness()
    let path = "/v1/scenes/evening"

    let sent = try curl.send("POST", path + "?wait=sent", "")
    #expect(sent.status == 200)
    guard case .array(let events) = sent.json["events"] else {
      Issue.record("no events")
      return
    }
    #expect(events.map { $0["phase"] } == ["sent", "sent"])
    #expect(events.map { $0["key"] } == ["desk/level", "kitchen-a/level"])
    // The broker acknowledges before it has passed the message on.
    #expect(witness.waitFor("cmd/desk", "80"))
    #expect(witness.texts(on: "cmd/desk") == ["80"])
    #expect(try curl.send("POST", path, #"{"id":"mine"}"#).status == 202)

    let unknown = try curl.send("POST", "/v1/scenes/evning", "")
    #expect(unknown.status == 404)
    #expect(unknown.json["code"] == "unknown_key" && unknown.json["suggestion"] == "evening")
    #expect(try curl.send("POST", "/v1/scenes/Bad%20Name", "").status == 404)
    #expect(try curl.send("POST", path, #"{"wiat":1}"#).status == 422)
    #expect(try curl.send("GET", path, "").status == 405)
  }
}

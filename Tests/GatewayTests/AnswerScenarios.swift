// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut
import TestBroker
import Testing

/// The answers to "why": the last commands of a key, all about a property, devices, and the message
/// of a value that is not sent.
@Suite(.blocking) struct AnswerScenarios {
  private static let lampState = #"{"state":"ON","brightness":10,"color_temp":300}"#

  static func rows(_ name: String, _ reply: JSONValue) -> [JSONValue] {
    guard case .array(let rows) = reply[name] else { return [] }
    return rows
  }

  private static func row(
    _ key: String,
    _ client: ControlClient
  ) throws -> PropertyRow {
    let reply = try client.ask(#"{"describe":"\#(key)"}"#)
    return try #require(rows("describe", reply).first.flatMap(PropertyRow.init), "\(reply)")
  }

  // MARK: - log

  @Test func `the log says who asked, what became of it, and why`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let client = try bench.client()
    client.send(
      #"{"key":"desk-lamp/brightness","set":40,"id":"one","source":"test","wait":"sent"}"#
    )
    _ = try client.next { $0["phase"] == "sent" }
    let refused = try client.ask(#"{"key":"desk-lamp/brightness","set":999,"source":"bad"}"#)
    #expect(refused["phase"] == "rejected")

    let log = Self.rows("log", try client.ask(#"{"log":"desk-lamp/brightness","id":1}"#))

    #expect(log.map { $0["phase"] } == ["sent", "rejected"])
    #expect(log.first?["id"] == "one")
    #expect(log.first?["source"] == "test")
    #expect(log.first?["value"] == 40)
    #expect(log.last?["source"] == "bad")
    #expect(log.last?["reason"]?.string?.contains("254") == true)
  }

  @Test func `ten changes that became one command are one entry`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let client = try bench.client()
    for value in 1...9 { client.send(#"{"key":"desk-lamp/brightness","set":\#(value)}"#) }
    client.send(#"{"key":"desk-lamp/brightness","set":10,"wait":"sent","id":"last"}"#)
    _ = try client.next { $0["phase"] == "sent" }

    client.send(#"{"log":"desk-lamp/*","id":"l"}"#)
    let log = Self.rows("log", try client.next { $0["log"] != nil })

    #expect(log.map { $0["collapsed"] } == [9])
    #expect(log.map { $0["value"] } == [10])
  }

  @Test func `a command by MQTT is in the log too, with its end at the device`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    #expect(witness.switchesTheLampOn())
    let run = try SettleRun(["log", "desk-lamp/power"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 0)
    let fields = run.output.split(separator: "\n").first?.split(separator: "\t").map(String.init)
    #expect(fields?[1...5] == ["desk-lamp/power", "confirmed", "true", "0", "mqtt"])
  }

  @Test(arguments: [
    (#"{"log":"desk-lamp/brigthness"}"#, "unknown_key"), (#"{"log":true}"#, "bad_type"),
    (#"{"devices":"desk-lmap"}"#, "unknown_key"),
    (#"{"log":"*","key":"desk-lamp/power"}"#, "misplaced_member"),
    (#"{"get":"*","dry_run":true}"#, "misplaced_member"),
    (#"{"status":"yes"}"#, "bad_type"), (#"{"status":true,"key":"x/y"}"#, "misplaced_member"),
  ])
  func `mistakes are named`(line: String, code: String) throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let reply = try bench.client().ask(line)
    #expect(reply["error"]?["code"]?.string == code, "\(reply)")
  }

  // MARK: - describe

  @Test func `describe of one key has its topics and its message`() throws {
    let bench = try Bench.running(
      devices: DeviceText.lamp(more: "  lane: mesh"),
      settings: "lanes: {mesh: {rate: 10/s, burst: 5}}"
    )

    let row = try Self.row("desk-lamp/brightness", try bench.client())

    let details = try #require(row.details)
    #expect(details.lane == "mesh")
    #expect(details.out.topic == "zigbee2mqtt/desk_lamp/set")
    #expect(details.states.map(\.topic) == ["zigbee2mqtt/desk_lamp"])
    #expect(details.states.map(\.pointer) == ["/brightness"])
    #expect(details.availability.contains("zigbee2mqtt/desk_lamp/availability"))
    #expect(details.message?.topic == details.out.topic)
    #expect(details.obstacle == nil)
  }

  @Test func `describe of a pattern stays short`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let reply = try bench.client().ask(#"{"describe":"desk-lamp/*"}"#)
    #expect(!Self.rows("describe", reply).isEmpty)
    #expect(Self.rows("describe", reply).allSatisfy { $0["out"] == nil && $0["message"] == nil })
  }

  @Test func `settle describe of a device shows all about each property`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    func described(_ arguments: String...) throws -> (status: Int32?, output: String) {
      let run = try SettleRun(["describe"] + arguments, socketPath: bench.socketPath)
      return (run.waitForExit(), run.output)
    }
    let whole = try described("desk-lamp")
    #expect(whole.status == 0)
    for key in ["desk-lamp/brightness", "desk-lamp/power"] {
      let one = try described(key).output
      #expect(!one.isEmpty && whole.output.contains(one), "\(whole.output)")
    }
    #expect(try described("desk-lamp/x*").status == 65)
    #expect(try described("desk-lamp/*", "4").status == 64)
  }

  @Test func `settle describe shows all about a property, and the message of a value`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let client = try bench.client()
    client.send(#"{"key":"desk-lamp/brightness","set":7,"wait":"sent"}"#)
    _ = try client.next { $0["phase"] == "sent" }

    let run = try SettleRun(
      ["describe", "desk-lamp/brightness", "40"],
      socketPath: bench.socketPath
    )

    #expect(run.waitForExit() == 0)
    let output = run.output
    #expect(output.contains("sends to   zigbee2mqtt/desk_lamp/set (QoS 1)\n"), "\(output)")
    #expect(output.contains("reads      zigbee2mqtt/desk_lamp, value at /brightness\n"))
    #expect(
      output.contains(
        #"would send zigbee2mqtt/desk_lamp/set {"brightness":40}"# + "\n"
          + "           what 40 would be sent as; nothing is sent now\n"
      )
    )
    #expect(output.contains("\tdesk-lamp/brightness\tsent\t7\t0\tsocket\t"))
  }

  @Test func `settle describe shows an example as one, and units once`() throws {
    let bench = try Bench.running(
      devices: """
        boiler:
          properties:
            heat: {type: number, range: [5, 30], unit: °C, command: {topic: heat}}
            power: {type: number, unit: W, command: {topic: power}}

        """
    )
    func described(_ key: String) throws -> String {
      let run = try SettleRun(["describe", key], socketPath: bench.socketPath)
      #expect(run.waitForExit() == 0)
      return run.output
    }
    let heat = try described("boiler/heat")
    #expect(heat.contains("type       number, 5 to 30 °C\n"), "\(heat)")
    let example = "example    heat 17.5\n           what 17.5 would be sent as; nothing is sent"
    #expect(heat.contains(example), "\(heat)")
    #expect(try described("boiler/power").contains("type       number, a finite number in W\n"))
  }

  @Test func `the log shows a command as sent that a newer value followed`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let client = try bench.client()
    for (value, id) in [(40, "a"), (50, "b")] {
      client.send(#"{"key":"desk-lamp/brightness","set":\#(value),"id":"\#(id)","wait":"sent"}"#)
      _ = try client.next { $0["phase"] == "sent" && $0["id"]?.string == id }
    }
    let run = try SettleRun(["log", "desk-lamp/brightness"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 0)
    #expect(run.lines.map(\.phase) == ["sent", "sent"])
    #expect(run.lines.first?.reason == "then superseded: newer value")
  }

  // MARK: - dry run

  @Test(arguments: [
    (["set", "desk-lamp/brightness", "40"], #"{"brightness":40}"#),
    (["step", "desk-lamp/brightness", "+5"], #"{"brightness":15}"#),
    (["toggle", "desk-lamp/power"], #"{"state":"OFF"}"#),
    (
      ["set", "desk-lamp", "brightness=40", "power=off", "transition=2"],
      #"{"state":"OFF","brightness":40,"transition":2}"#
    ),
    (["set", "desk-lamp", "brightness=40", "power=on"], #"{"brightness":40}"#),
  ])
  func `a dry run prints the message that is sent otherwise, and sends nothing`(
    arguments: [String],
    payload: String
  ) throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp", Self.lampState)
    #expect(witness.waitFor { $0.contains { $0.topic == "settle/desk-lamp/brightness" } })

    let run = try SettleRun(arguments + ["--dry-run"], socketPath: bench.socketPath)

    #expect(run.waitForExit() == 0, "\(run.errors)")
    #expect(run.output == "zigbee2mqtt/desk_lamp/set \(payload)\n")
    #expect(run.errors.isEmpty)
    #expect(Self.rows("pending", try bench.client().ask(#"{"pending":"*"}"#)).isEmpty)
    // The same change, made, sends exactly that.
    let made = try SettleRun(arguments + ["--wait=sent"], socketPath: bench.socketPath)
    #expect(made.waitForExit() == 0)
    #expect(witness.texts(on: "zigbee2mqtt/desk_lamp/set", count: 1) == [payload])
  }

  @Test func `a dry run merges what is pending, and says if nothing would be sent`() throws {
    let bench = try Bench.running(devices: DeviceText.lamp(policy: "{delay: 60s, max_wait: none}"))
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp", Self.lampState)
    #expect(witness.waitFor { $0.contains { $0.topic == "settle/desk-lamp/brightness" } })
    let client = try bench.client()

    let same = try client.ask(#"{"key":"desk-lamp/brightness","set":10,"dry_run":true}"#)
    #expect(Self.rows("dry_run", same).first?["reason"] == "the device has this value")

    _ = try client.ask(#"{"key":"desk-lamp/brightness","set":40}"#)
    let merged = try client.ask(#"{"key":"desk-lamp/power","set":false,"dry_run":true,"id":3}"#)
    #expect(merged["id"] == 3)
    let message = try #require(Self.rows("dry_run", merged).first)
    #expect(message["payload"] == #"{"state":"OFF","brightness":40}"#)
    #expect(message["keys"] == ["desk-lamp/power", "desk-lamp/brightness"])

    let refused = try client.ask(#"{"key":"desk-lamp/brightness","set":999,"dry_run":true}"#)
    #expect(refused["error"]?["code"] == "bad_value")
    let pending = Self.rows("pending", try client.ask(#"{"pending":"*"}"#))
    #expect(pending.map { $0["key"] } == ["desk-lamp/brightness"])
  }

  // MARK: - devices

  @Test func `devices lists properties, availability and topic`() throws {
    let bench = try Bench.running(
      devices: DeviceText.lamp() + DeviceText.levels(1, policy: "{delay: 1s}")
    )
    let witness = try bench.witness()
    witness.publish("zigbee2mqtt/desk_lamp/availability", #"{"state":"offline"}"#)
    let client = try bench.client()
    var reply = try client.ask(#"{"devices":"desk-lamp"}"#)
    while Self.rows("devices", reply).first?["availability"] != "offline" {
      reply = try client.ask(#"{"devices":"desk-lamp"}"#)
    }
    #expect(Self.rows("devices", reply).first?["topic"] == "zigbee2mqtt/desk_lamp/set")

    let run = try SettleRun(["devices"], socketPath: bench.socketPath)

    #expect(run.waitForExit() == 0)
    let lines = run.output.split(separator: "\n").map { $0.split(separator: "\t").map(String.init) }
    #expect(lines.map(\.first) == ["desk-lamp", "dev0"])
    #expect(lines[0][2].hasPrefix("offline for "))
    #expect(lines[1][1...] == ["dev0", "unknown", "cmd/dev0", "level", "-"])
  }
}

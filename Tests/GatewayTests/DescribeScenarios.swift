// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import TestBroker
import Testing

/// 8, continued: the description of properties.
@Suite(.blocking) struct DescribeScenarios {
  private static let devices = """
    blind:
      name: Blind
      profile: zigbee2mqtt/cover
      topic: zigbee2mqtt/blind

    """

  @Test func `describe returns type, range, policy and urgent values`() throws {
    let bench = try Bench.running(devices: Self.devices)
    let client = try bench.client()

    let reply = try client.ask(#"{"describe":"blind/*","id":7}"#)

    #expect(reply["id"] == 7)
    guard case .array(let rows) = reply["describe"] else {
      Issue.record("no rows: \(reply)")
      return
    }
    let position = rows.first { $0["key"] == "blind/position" }
    #expect(position?["device"] == "Blind")
    #expect(position?["type"] == "integer")
    #expect(position?["range"] == [0, 100])
    #expect(position?["policy"]?["delay_ms"] == 500)
    #expect(position?["policy"]?["max_wait_ms"] == .null)
    #expect(position?["confirm_ms"]?.double != nil)
    let command = rows.first { $0["key"] == "blind/command" }
    #expect(command?["type"] == "action")
    #expect(command?["values"] == ["OPEN", "CLOSE", "STOP"])
    #expect(command?["urgent"] == ["OPEN", "CLOSE", "STOP"])
    #expect(command?["ends"] == ["blind/position"])
    #expect(command?["confirm_ms"] == .null)
  }

  @Test func `describe says which values a property implies`() throws {
    let bench = try Bench.running(
      devices: """
        lamp:
          properties:
            power: {type: boolean, command: {topic: lamp/power}}
            level: {type: integer, command: {topic: lamp/level}, implies: {power: true}}

        """
    )
    let reply = try bench.client().ask(#"{"describe":"lamp/level"}"#)
    guard case .array(let rows) = reply["describe"] else {
      Issue.record("no rows: \(reply)")
      return
    }
    #expect(rows.first?["implies"] == .object(["lamp/power": true]))
    let run = try SettleRun(["describe", "lamp/level"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 0)
    #expect(run.output.contains("\nimplies    lamp/power true\n"), "\(run.output)\(run.errors)")
  }

  @Test(arguments: [
    (#"{"describe":"blind/positoin"}"#, "unknown_key"),
    (#"{"describe":true}"#, "bad_type"),
    (#"{"describe":"*","key":"blind/position"}"#, "misplaced_member"),
  ])
  func `an unknown key in describe is an error`(line: String, code: String) throws {
    let bench = try Bench.running(devices: Self.devices)
    #expect(try bench.client().ask(line)["error"]?["code"]?.string == code)
  }

  @Test func `a pattern without a match describes nothing`() throws {
    let bench = try Bench.running(devices: Self.devices)
    #expect(try bench.client().ask(#"{"describe":"x*"}"#)["describe"] == [])
  }

  @Test(arguments: ["get", "watch", "flush", "pending", "cancel", "describe", "log"])
  func `a misspelled device is answered with the one that was meant`(command: String) throws {
    let bench = try Bench.running(devices: DeviceText.lamp())
    let run = try SettleRun([command, "lmp"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 65)
    #expect(run.output.isEmpty)
    #expect(run.errors == "settle: no device or key 'lmp'; did you mean 'desk-lamp'?\n")
  }

  @Test func `log shows the last commands of all properties`() throws {
    let bench = try Bench.running(devices: DeviceText.levels(2, policy: "live"))
    let client = try bench.client()
    for device in 0...1 {
      client.send(#"{"key":"dev\#(device)/level","set":7,"now":true,"wait":"sent"}"#)
      _ = try client.next { $0["phase"] == "sent" }
    }
    let run = try SettleRun(["log"], socketPath: bench.socketPath)
    #expect(run.waitForExit() == 0)
    let keys = run.output.split(separator: "\n").map { $0.split(separator: "\t")[1] }
    #expect(keys == ["dev0/level", "dev1/level"], "\(run.output)\(run.errors)")
  }
}

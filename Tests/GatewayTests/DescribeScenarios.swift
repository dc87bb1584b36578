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
}

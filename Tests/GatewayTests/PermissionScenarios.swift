// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// A broker that refuses some publishes, as requesters see it.
@Suite(.blocking) struct PermissionScenarios {
  private let devices = """
    lamp:
      properties:
        level:
          type: number
          range: [0, 100]
          policy: {delay: 20ms}
          command: {topic: secret/lamp, payload: $value}
          state: {topic: lamp, value: ""}
          confirm: {within: 300ms, retries: 0}

    """

  private func bench(mqtt: String = "") throws -> Bench {
    let folder = try TemporaryFolder.make("settle-acl")
    let rules = folder + "/acl"
    try TextFile.write("topic readwrite settle/#\ntopic readwrite lamp\ntopic read #\n", to: rules)
    var options = TestBroker.Options()
    options.lines = ["acl_file \(rules)", "log_type all"]
    let bench = try Bench(devices: devices, mqtt: mqtt, options: options)
    try bench.broker.start()
    TemporaryFolder.remove(folder)
    try bench.startGateway()
    return bench
  }

  /// Under MQTT 5 the broker says so.
  @Test func `a command that the broker refuses fails at once, with the reason`() throws {
    let bench = try bench()
    let client = try bench.client()

    client.send(#"{"key":"lamp/level","set":1,"id":"a","wait":"confirmed"}"#)

    let end = try client.next { $0["id"] == "a" && $0["phase"] == "failed" }
    #expect(end["reason"]?.string?.contains("not authorized (0x87)") == true)
    #expect(end["attempt"] == 1)
    #expect(try bench.witness().waitFor("settle/lamp/level", ""))
    #expect(try bench.running().lines(containing: "No connection").isEmpty)
    #expect(bench.broker.log().components(of: "Denied PUBLISH from settle") == 1)
  }

  /// Under 3.1.1 it acknowledges and forgets; only the device's silence tells.
  @Test func `under 3_1_1 a command that the broker drops is sent, and not confirmed`() throws {
    let bench = try bench(mqtt: ", protocol: 3.1.1")
    let client = try bench.client()

    client.send(#"{"key":"lamp/level","set":1,"id":"a","wait":"confirmed"}"#)

    _ = try client.next { $0["id"] == "a" && $0["phase"] == "sent" }
    let end = try client.next { $0["id"] == "a" && $0["phase"] == "failed" }
    #expect(end["reason"]?.string?.contains("not confirmed") == true)
  }
}

extension String {
  /// How often `text` occurs.
  fileprivate func components(of text: String) -> Int {
    split(separator: "\n").count { $0.contains(text) }
  }
}

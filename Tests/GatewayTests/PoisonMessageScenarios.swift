// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import TestBroker
import Testing

/// A broker that drops the connection for one command.
@Suite(.blocking) struct PoisonMessageScenarios {
  @Test func `the command fails, status names its topic, and another value is sent at once`() throws
  {
    let broker = try ScriptedBroker(
      .init { packet in
        let text = String(decoding: packet.body, as: UTF8.self)
        return packet.topic == "cmd/dev0" && text.contains("40") ? [.close] : packet.politeAnswer
      }
    )
    let bench = try Bench(devices: DeviceText.levels(2, policy: "{delay: 20ms}"))
    try bench.launchGateway(
      environment: ["SETTLE_MQTT_URL": "mqtt://127.0.0.1:\(broker.port)"]
    )
    let gateway = try bench.running()
    #expect(gateway.waitForLine(containing: "Connected to the broker") != nil)
    let client = try bench.client()

    client.send(#"{"key":"dev0/level","set":40,"id":"a","wait":"sent"}"#)
    let failed = try client.next { $0["id"] == "a" && $0["phase"] == "failed" }
    #expect(failed["reason"]?.string?.contains("quarantined: the broker drops") == true)
    #expect(gateway.waitForLine(containing: "Topic quarantined")?.contains("cmd/dev0") == true)

    let reply = try client.ask(#"{"status":true}"#)
    let report = try #require(reply["status"].flatMap { StatusReport($0) })
    #expect(report.brokers.first?.quarantined.map(\.topic) == ["cmd/dev0"])
    #expect(report.problems.contains { $0.message.contains("what was sent to cmd/dev0") })

    let tries = broker.packets.count { $0.topic == "cmd/dev0" }
    client.send(#"{"key":"dev0/level","set":41,"id":"b","wait":"sent"}"#)
    _ = try client.next { $0["id"] == "b" && $0["phase"] == "sent" }
    client.send(#"{"key":"dev1/level","set":40,"id":"c","wait":"sent"}"#)
    _ = try client.next { $0["id"] == "c" && $0["phase"] == "sent" }
    #expect(broker.packets.count { $0.topic == "cmd/dev0" } == tries + 1)
  }
}

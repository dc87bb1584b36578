// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Glibc
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// 52: a broker sends a property of MQTT 5 that does not exist.
///
/// libmosquitto 2.0.11 ends the process by an assertion; another version may close the connection.
@Suite(.blocking) struct HostilePropertyScenarios {
  struct Packet: CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]
  }

  /// Packets with the property 0x7F.
  static let packets: [Packet] = [
    .init(testDescription: "PUBLISH", bytes: [0x30, 6, 0, 1, 0x61, 2, 0x7F, 0]),
    .init(testDescription: "PUBACK", bytes: [0x40, 6, 0, 1, 0, 2, 0x7F, 0]),
    .init(testDescription: "SUBACK", bytes: [0x90, 6, 0, 1, 2, 0x7F, 0, 0]),
    .init(testDescription: "DISCONNECT", bytes: [0xE0, 4, 0, 2, 0x7F, 0]),
  ]

  @Test(arguments: packets)
  func `no accepted value is lost and no core dump is left`(packet: Packet) throws {
    let hostile = try ScriptedBroker(
      .init {
        guard $0.connection == 1, $0.topic == "cmd/dev1" else { return $0.politeAnswer }
        return [.send(packet.bytes)]
      }
    )
    let bench = try Bench(
      devices: DeviceText.levels(2, policy: "{delay: 60s, max_wait: none}"),
      settings: "journal: {path: journal.db}"
    )
    try bench.broker.start()
    try bench.launchGateway(environment: ["SETTLE_MQTT_URL": "mqtt://127.0.0.1:\(hostile.port)"])
    let gateway = try bench.running()
    let client = try bench.client()
    for (key, value) in [("dev0/level", 7), ("dev1/level", 9)] {
      let accepted = try client.ask(#"{"key":"\#(key)","set":\#(value)}"#)
      #expect(accepted["phase"] == "accepted")
    }
    #expect(hostile.waitFor { $0.contains { $0.kind == .subscribe } })
    client.send(#"{"flush":"dev1/level"}"#)
    #expect(hostile.waitFor { $0.contains { $0.topic == "cmd/dev1" } })

    var ending = gateway.waitForExit(within: .milliseconds(1))
    while ending == nil, !hostile.waitFor(connections: 2, within: .milliseconds(5)) {
      ending = gateway.waitForExit(within: .milliseconds(5))
    }
    #expect(!gateway.leftCoreDump)
    if ending == nil { try bench.crash() }
    let witness = try bench.witness()
    try bench.startGateway()

    #expect(witness.waitFor("cmd/dev0", #"{"v":7}"#))
    // A gateway that lived on has sent it to the other broker.
    #expect(ending == nil || witness.waitFor("cmd/dev1", #"{"v":9}"#))
  }
}

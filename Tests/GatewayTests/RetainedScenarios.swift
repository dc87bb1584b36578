// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut
import Operations
import TestBroker
import Testing

/// What the broker retains of a device counts before anything is sent to it.
@Suite(.blocking) struct RetainedScenarios {
  /// `dev0`, which says whether it is online, and `dev1`, which says nothing.
  private static var devices: String {
    DeviceText.levels(2, policy: "{delay: 20ms}")
      .replacing("dev0:\n", with: "dev0:\n  availability: {topic: dev0/status}\n")
  }

  @Test(arguments: [false, true])
  func `a value waits for its offline device over a restart`(isKilled: Bool) throws {
    let bench = try Bench.journalling(Self.devices)
    let witness = try bench.witness()
    witness.publish("dev0/status", "offline", retain: true)
    let client = try bench.client()
    while try !JSONWriter.text(client.ask(#"{"devices":"dev0"}"#)).contains(
      #""availability":"offline""#
    ) {}
    let reply = try client.ask(#"{"key":"dev0/level","set":7,"ttl":"60s"}"#)
    #expect(reply["phase"] == "accepted")

    if isKilled { try bench.crash() } else { try bench.stop() }
    try bench.startGateway()

    // What is sent later has come, and dev0 has still got nothing.
    _ = try bench.client().ask(#"{"key":"dev1/level","set":1,"now":true}"#)
    #expect(witness.waitFor("cmd/dev1", #"{"v":1}"#))
    #expect(witness.texts(on: "cmd/dev0") == [])
    witness.publish("dev0/status", "online", retain: true)
    #expect(witness.texts(on: "cmd/dev0", count: 1) == [#"{"v":7}"#])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Operations
import TestBroker
import Testing

/// `settle watch --retry`, while gateways come and go.
@Suite(.blocking) struct WatchScenarios {
  /// Makes changes until the watcher has shown `count` commands that were sent.
  private func change(_ bench: Bench, until watcher: SettleRun, shows count: Int) throws -> Bool {
    let client = try bench.client()
    var wait = Wait()
    var value = count * 1000
    while wait.remaining() != nil {
      value += 1
      _ = try client.ask(#"{"key":"dev0/level","set":\#(value),"now":true}"#)
      if watcher.lines.count >= count { return true }
    }
    return false
  }

  @Test func `it waits for a gateway, and goes on with the next one`() throws {
    let bench = try Bench(devices: DeviceText.levels(1, policy: "{delay: 10ms, max_wait: none}"))
    try bench.broker.start()
    let watcher = try SettleRun(
      ["watch", "dev0", "--retry", "--phase", "sent"],
      socketPath: bench.socketPath
    )
    try bench.startGateway()
    #expect(try change(bench, until: watcher, shows: 1))

    try bench.startGateway()
    let before = watcher.lines.count
    #expect(try change(bench, until: watcher, shows: before + 1))

    #expect(watcher.lines.allSatisfy { $0.phase == "sent" })
    let told = watcher.errors.split(separator: "\n").map(String.init)
    #expect(told.count { $0.hasSuffix("; trying again") } >= 1, "\(told)")
    #expect(told.last == "settle: the gateway is back; events in between are missing")
  }
}

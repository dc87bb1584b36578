// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import Durability
import GatewayCore
import JSON
import LastOut
import Testing
import Values

/// What is accepted while the disk is full and still has an older value of the key.
@Suite struct UnwritableStoreTests {
  @Test(arguments: 1...3)
  func `steps that waited for a report are rejected once each, and never stored`(
    count: Int
  ) throws {
    var level = CoreBench.number("swing")
    level.state = StateSource(
      topic: "swing",
      value: .whole,
      get: StateRequest(topic: "swing/get", payload: [])
    )
    let fan = Device(id: "fan", name: "fan", properties: [level])
    var bench = CoreBench(devices: [fan])
    let swing = try bench.core.registry.index(of: "fan/swing")
    try bench.set("fan/swing", .number(7))
    #expect(bench.step().contains("write"))
    bench.commitEnds()
    _ = bench.step()
    _ = bench.core.cancel(swing, at: bench.now, source: "test")
    for _ in 0..<count { try bench.core.change(.step(1), of: swing, at: bench.now) }
    _ = bench.step()
    bench.pass(200)
    #expect(bench.step().contains("write"))
    bench.core.pipeline.storeFinished(.failed(.diskFull), at: bench.now)
    #expect(!bench.step().contains { $0.hasPrefix("emit") })
    bench.core.reported(swing, 20, source: 0, at: bench.now)
    let told = bench.step().filter { $0.hasPrefix("emit") }
    #expect(told == Array(repeating: "emit rejected fan/swing", count: count))

    bench.pass(60_000)
    var written = 0
    while bench.step().contains("write") {
      bench.commitEnds()
      written += 1
    }
    #expect(written == 1)
    #expect(bench.core.pipeline.durability?.plan.isIdle == true)
    #expect(bench.published().isEmpty)
  }
}

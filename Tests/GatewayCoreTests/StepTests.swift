// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import GatewayCore
import LastOut
import Testing
import Values

@Suite struct StepTests {
  @Test func `a step writes, publishes, emits, and then publishes the states`() throws {
    var bench = CoreBench()
    try bench.set("light/hue", .number(7), skipsQuiet: true)
    try bench.set("blind/button", .text("OPEN"), skipsQuiet: true)
    var kinds: [String] = []
    for effect in bench.step() {
      let kind = String(effect.prefix { $0 != " " })
      if kinds.last != kind { kinds.append(kind) }
    }
    #expect(kinds == ["write", "publish", "emit", "state"])
  }

  @Test func `nothing follows the end`() throws {
    var bench = CoreBench(isJournalled: false)
    try bench.set("light/hue", .number(7))
    bench.core.connectionChanged(isUp: false, at: bench.now)
    bench.core.beginShutdown(at: bench.now)
    bench.pass(10_000)
    // The outcomes come first; the end follows at once.
    #expect(!bench.step().contains("end"))
    let deadline = bench.core.nextDeadline(after: bench.now) ?? .zero
    #expect(deadline > .zero && deadline <= bench.now)
    #expect(bench.step() == ["end"])
    let isEnded = bench.core.isEnded
    #expect(isEnded)
    #expect(bench.step().isEmpty)
    #expect(bench.core.nextDeadline(after: bench.now) == nil)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
@testable import GatewayCore
import JSON
import Testing
import Values

/// The line of the log about reports that cannot be read.
@Suite struct UnreadableReportTests {
  private static func bench() throws -> CoreBench {
    var level = CoreBench.number("level")
    level.states = [StateSource(topic: "lamp", value: try #require(JSONPointer("/level")))]
    let device = Device(id: "d", name: "d", properties: [level])
    return CoreBench(isJournalled: false, devices: [device])
  }

  @Test func `it comes once for each property`() throws {
    var bench = try Self.bench()
    let key = try bench.core.registry.index(of: "d/level")
    bench.core.reportedUnreadable(key, "offline", source: 0, at: bench.now)
    bench.core.reported(key, "abc", source: 0, at: bench.now)
    #expect(
      bench.step().filter { $0.hasPrefix("log") } == [
        "log key=d/level topic=lamp value=/level type=number report='offline'"
      ]
    )
    #expect(bench.core.reports.count == 0)
  }
}

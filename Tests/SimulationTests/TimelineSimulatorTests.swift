// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import LastOut
import Simulation
import Testing

@Suite struct TimelineSimulatorTests {
  @Test func `plays every timeline of the contract`() throws {
    let timelines = try Fixture.lines(of: "timelines.ndjson")
    #expect(timelines.count == 659)
    for timeline in timelines {
      let id = timeline["id"]?.string ?? "?"
      var simulator = TimelineSimulator(policy: try Fixture.policy(of: timeline))
      for event in timeline["events"]?.elements ?? [] {
        try simulator.apply(try ControlRequest(event, keys: .any))
      }
      simulator.finish()
      let runs = simulator.runs.map { Fixture.Run(at: $0.at, key: $0.key, value: $0.value) }
      let expected = (timeline["expect"]?.elements ?? []).map(Fixture.Run.init)
      // The order of keys that are due at the same instant is not specified.
      #expect(runs.sorted() == expected.sorted(), "\(id)")
    }
  }
}

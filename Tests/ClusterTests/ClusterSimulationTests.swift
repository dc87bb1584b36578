// Settle
// SPDX-License-Identifier: Apache-2.0

import ClusterSimulation
import Testing

/// Runs that a debug build can do in some seconds; `make soak CLUSTER=1` does more, these among
/// them.
@Suite struct ClusterSimulationTests {
  /// A failing seed names itself, reports its last events and replays exactly.
  @Test func `gateways as one break no promise, and every kind of trouble is met`() {
    var seen = ClusterCoverage()
    for seed: UInt64 in 1...18 {
      let report = ClusterReport(seed: seed, steps: 5000)
      #expect(report.breach == nil, "\(report.breach ?? "")")
      seen.add(report.seen)
    }
    #expect(seen.missing.isEmpty, "\(seen)")
  }

  @Test func `the same seed gives the same run`() {
    var traces: [[String]] = [[], []]
    for place in traces.indices {
      _ = ClusterReport(seed: 7, steps: 1000) { traces[place].append($0) }
    }
    #expect(!traces[0].isEmpty)
    #expect(traces[0] == traces[1])
  }
}

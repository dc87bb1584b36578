// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import Testing

@Suite struct FaultSimulationTests {
  @Test(arguments: 0..<8)
  func `no life among faults breaks a rule`(part: UInt64) {
    for seed in part * 25..<(part + 1) * 25 {
      let report = LifeReport(seed: seed, steps: 300)
      #expect(report.breach == nil, "\(report.breach ?? "")")
    }
  }
}

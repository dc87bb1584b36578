// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import Testing

@Suite struct HouseholdTests {
  @Test func `no household violates a clause that is held, and every situation is met`() {
    var seen = HouseholdCoverage()
    for seed: UInt64 in 0..<400 {
      let report = HouseholdReport(seed: seed, steps: 300)
      #expect(report.breach == nil, "\(report.breach ?? "")")
      seen.add(report.seen)
    }
    #expect(seen.missing.isEmpty, "\(seen)")
  }

  @Test(arguments: [false, true])
  func `the same seed lives the same life in a household`(isLate: Bool) {
    let seed: UInt64 = isLate ? 7 : 8
    let first = HouseholdLife(seed: seed, isTraced: true)
    let second = HouseholdLife(seed: seed, isTraced: true)
    first.live(steps: 300)
    second.live(steps: 300)
    let traces = (first.trace, second.trace)
    #expect(!traces.0.isEmpty)
    #expect(traces.0 == traces.1)
  }

  /// The checks see what is wrong in the simulated world, so they would see it in the gateway too.
  @Test(arguments: [
    (HouseholdLife.Mistake.neverArrives, Clause.stateOfCovers),
    (.handUnreported, .targetAtRest),
  ])
  func `a mistake in the world violates its clause more often`(
    mistake: HouseholdLife.Mistake,
    clause: Clause
  ) {
    let (right, wrong) = (seen(nil), seen(mistake))
    let counts = (right.violations[clause] ?? 0, wrong.violations[clause] ?? 0)
    #expect(counts.1 > 2 * counts.0 + 3, "\(counts)")
  }

  @Test(arguments: [HouseholdLife.Mistake.acknowledgementLost, .messagesSwapped])
  func `a mistake in the world ends a life`(mistake: HouseholdLife.Mistake) {
    let breaches = (0..<40).compactMap { (seed: UInt64) in
      HouseholdReport(seed: seed, steps: 300, mistake: mistake).breach
    }
    #expect(!breaches.isEmpty)
  }

  private func seen(_ mistake: HouseholdLife.Mistake?) -> HouseholdCoverage {
    var seen = HouseholdCoverage()
    for seed: UInt64 in 0..<100 {
      seen.add(
        HouseholdReport(seed: seed, steps: 300, clauses: Clauses([]), mistake: mistake).seen
      )
    }
    return seen
  }
}

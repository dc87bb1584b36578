// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

@Suite struct RandomWalkTests {
  /// A failing seed names itself and replays exactly.
  @Test(arguments: 0..<8)
  func `no schedule of changes, losses, reports and absences breaks an invariant`(part: UInt64) {
    for seed in part * 400..<(part + 1) * 400 {
      var walk = RandomWalk(seed: seed)
      walk.run(steps: 80)
      #expect(walk.broken == nil, "seed \(seed)")
    }
  }
}

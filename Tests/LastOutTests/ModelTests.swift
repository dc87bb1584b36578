// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

@Suite struct ModelTests {
  @Test(arguments: 0..<40)
  func `the core equals the slow model`(batch: Int) {
    for seed in UInt64(batch * 200)..<UInt64(batch * 200 + 200) {
      var walk = RandomWalk(seed: seed)
      walk.play(steps: 120)
      #expect(walk.difference == nil, "seed \(seed)")
    }
  }
}

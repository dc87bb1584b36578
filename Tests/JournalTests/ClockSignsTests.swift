// Settle
// SPDX-License-Identifier: Apache-2.0

import Journal
import Testing

/// Whether the clock is synchronised, where the kernel must not be asked.
struct ClockSignsTests {
  @Test(arguments: [
    ("/none", 0, false),
    ("/none", -1, false),
    ("/none", 37, true),
    ("/dev/null", 0, true),
  ])
  func `only a sign of a time source counts`(mark: String, aheadOfWall: Int64, counts: Bool) {
    #expect(SystemClock.hasSigns(mark: mark, aheadOfWall: aheadOfWall) == counts)
  }
}

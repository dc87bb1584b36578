// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations
import Testing

@Suite struct WallClockTests {
  @Test(
    arguments: [
      (0, "1970-01-01T00:00:00.000Z"),
      (1, "1970-01-01T00:00:00.001Z"),
      (-1, "1969-12-31T23:59:59.999Z"),
      (951_782_400_000, "2000-02-29T00:00:00.000Z"),
      (951_868_799_999, "2000-02-29T23:59:59.999Z"),
      (1_795_248_000_123, "2026-11-21T08:00:00.123Z"),
      (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
      (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
      (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
      (Int64.max, "9999-12-31T23:59:59.999Z"),
      (Int64.min, "0000-01-01T00:00:00.000Z"),
    ] as [(Int64, String)]
  )
  func `times are written in UTC with milliseconds`(milliseconds: Int64, text: String) {
    #expect(WallClock.text(milliseconds: milliseconds) == text)
  }
}

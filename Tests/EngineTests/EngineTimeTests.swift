// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import Engine

struct EngineTimeTests {
  @Test(arguments: [
    ("1970-01-01T00:00:00Z", 0), ("2000-02-29T12:00:00.5Z", 951_825_600_500_000_000),
    ("2026-11-25T09:56:13.511620012Z", 1_795_600_573_511_620_012),
  ])
  func `a time of the engine is read to the nanosecond`(text: String, expected: Int64) {
    #expect(EngineTime.nanoseconds(text) == expected)
  }

  @Test(arguments: [
    "", "Z", "2026-11-25T09:56:13", "2026-13-25T09:56:13Z", "2026-11-25T09:56:13.Z",
    "2026-11-25T09:56:13.0123456789Z", "2026-11-25T09:56:13+01:00", "2026-11-25T09:5x:13Z",
  ])
  func `anything else is refused`(text: String) {
    #expect(EngineTime.nanoseconds(text) == nil)
  }
}

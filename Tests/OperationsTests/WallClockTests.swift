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

@Suite struct IdentifierGeneratorTests {
  @Test func `identifiers have 26 characters of base 32 and begin with their time`() {
    var generator = IdentifierGenerator()
    let text = generator.next(milliseconds: 1_469_918_176_385)
    #expect(text.count == 26)
    #expect(text.hasPrefix("01ARYZ6S41"))
    #expect(text.allSatisfy { "0123456789ABCDEFGHJKMNPQRSTVWXYZ".contains($0) })
  }

  @Test func `identifiers ascend within a millisecond and when the clock steps back`() {
    var generator = IdentifierGenerator()
    let texts = [5, 5, 5, 4, 3, 6, 6, 1].map { generator.next(milliseconds: $0) }
    #expect(texts == texts.sorted())
    #expect(Set(texts).count == texts.count)
  }

  @Test func `two generators do not make the same identifiers`() {
    var left = IdentifierGenerator()
    var right = IdentifierGenerator()
    #expect(left.next(milliseconds: 1) != right.next(milliseconds: 1))
  }
}

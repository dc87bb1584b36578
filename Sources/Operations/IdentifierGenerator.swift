// Settle
// SPDX-License-Identifier: Apache-2.0

/// Makes identifiers that sort by time: 26 characters of Crockford's base 32, as ULIDs are.
///
/// The first ten characters are the milliseconds since 1970, the others are random. Identifiers of
/// one generator are strictly ascending, also within a millisecond and when the clock steps back.
package struct IdentifierGenerator: Sendable {
  private static let alphabet: [UInt8] = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)
  private var time: Int64 = -1
  /// 80 random bits, counted up within a millisecond.
  private var high: UInt16 = 0
  private var low: UInt64 = 0

  package init() {}

  /// The next identifier at the current time.
  package mutating func next() -> String {
    next(milliseconds: WallClock.milliseconds())
  }

  /// The next identifier at a time in milliseconds since 1970; an earlier time than before counts
  /// as the same.
  package mutating func next(milliseconds: Int64) -> String {
    if milliseconds > time {
      time = milliseconds
      var source = SystemRandomNumberGenerator()
      // The top bit stays clear: room to count up.
      high = UInt16.random(in: 0...0x7FFF, using: &source)
      low = source.next()
    } else {
      let (sum, overflow) = low.addingReportingOverflow(1)
      low = sum
      if overflow { high &+= 1 }
    }
    return text
  }

  private var text: String {
    unsafe String(unsafeUninitializedCapacity: 26) { buffer in
      var rest = UInt64(bitPattern: time) & 0xFFFF_FFFF_FFFF
      for position in stride(from: 9, through: 0, by: -1) {
        unsafe buffer[position] = Self.alphabet[Int(rest & 31)]
        rest >>= 5
      }
      var random = UInt128(high) << 64 | UInt128(low)
      for position in stride(from: 25, through: 10, by: -1) {
        unsafe buffer[position] = Self.alphabet[Int(random & 31)]
        random >>= 5
      }
      return 26
    }
  }
}

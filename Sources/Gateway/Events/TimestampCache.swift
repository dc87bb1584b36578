// Settle
// SPDX-License-Identifier: Apache-2.0

import Operations

/// Caches the JSON text of the newest event's timestamp.
///
/// Many events share a millisecond and most share a second, which saves the calendar arithmetic.
struct TimestampCache {
  private var milliseconds = Int64.min
  private var bytes: [UInt8] = []

  /// Makes it the timestamp of `milliseconds` since 1970.
  mutating func set(_ milliseconds: Int64) {
    guard milliseconds != self.milliseconds else { return }
    let isSameSecond = milliseconds > 0 && milliseconds / 1000 == self.milliseconds / 1000
    self.milliseconds = milliseconds
    guard isSameSecond else {
      bytes = [UInt8(ascii: "\"")]
      bytes += WallClock.text(milliseconds: milliseconds).utf8
      bytes.append(UInt8(ascii: "\""))
      return
    }
    // Three digits stand before the Z and the quote.
    var rest = milliseconds % 1000
    for place in stride(from: bytes.count - 3, to: bytes.count - 6, by: -1) {
      bytes[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    }
  }

  func append(to output: inout [UInt8]) { output.append(contentsOf: bytes) }
}

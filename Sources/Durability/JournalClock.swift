// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// One reading of every clock that the journal needs.
package struct JournalClock: Hashable, Sendable {
  /// The monotonic clock.
  package var moment: Moment
  /// Time since the boot, suspends included, and the time of day.
  package var stamps: JournalStamps

  package init(moment: Moment, stamps: JournalStamps) {
    self.moment = moment
    self.stamps = stamps
  }

  /// The stamps of something that happened at `earlier`, seen from this reading.
  package func stamps(at earlier: Moment) -> JournalStamps {
    let age = earlier.duration(to: moment).wholeMilliseconds
    var result = stamps
    result.bootMilliseconds -= age
    result.wallMilliseconds -= age
    return result
  }
}

extension Duration {
  /// The duration in milliseconds, rounded toward zero and clamped to 64 bits.
  package var wholeMilliseconds: Int64 { wholeNanoseconds / 1_000_000 }
}

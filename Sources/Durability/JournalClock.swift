// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// One reading of every clock that the journal needs.
package struct JournalClock: Hashable, Sendable {
  /// The monotonic clock.
  package var moment: Moment
  /// The boot clock and the wall clock.
  package var stamps: JournalStamps
  /// Whether the kernel reports that a time source disciplines the wall clock.
  ///
  /// Only then can the age of a value of an earlier boot be calculated.
  package var isSynchronised: Bool

  package init(moment: Moment, stamps: JournalStamps, isSynchronised: Bool = true) {
    self.moment = moment
    self.stamps = stamps
    self.isSynchronised = isSynchronised
  }

  /// The stamps of `earlier`, calculated from this reading.
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

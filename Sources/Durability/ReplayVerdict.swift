// Settle
// SPDX-License-Identifier: Apache-2.0

/// Whether a value of an earlier process is still to be sent.
///
/// Inside a boot its age is measured by the boot clock, which nobody sets; across boots by the time
/// of day, as far as that is plausible.
package enum ReplayVerdict: Hashable, Sendable {
  /// Send it; this much of its time to live is left.
  case send(remaining: Duration)
  /// Too old, or of an age that nothing will ever tell.
  case expired
  /// The time of day is not set yet: ask again later.
  case unknown

  /// 2025-01-01 00:00 UTC; an earlier time of day means that the clock has not been set.
  static let earliestPlausible: Int64 = 1_735_689_600_000
  /// How far a value may lie in the future before the clock counts as wrong.
  static let tolerance: Int64 = 2_000

  /// Judges a value that was accepted at `stamps`.
  package init(of stamps: JournalStamps, ttl: Duration, now: JournalStamps) {
    let age: Int64
    if stamps.boot == now.boot {
      age = now.bootMilliseconds.subtractingSaturated(stamps.bootMilliseconds)
      guard age >= 0 else {
        self = .expired
        return
      }
    } else {
      guard stamps.wallMilliseconds >= Self.earliestPlausible else {
        self = .expired
        return
      }
      age = now.wallMilliseconds.subtractingSaturated(stamps.wallMilliseconds)
      guard now.wallMilliseconds >= Self.earliestPlausible, age >= -Self.tolerance else {
        self = .unknown
        return
      }
    }
    let remaining = ttl - .milliseconds(max(age, 0))
    self = remaining > .zero ? .send(remaining: remaining) : .expired
  }
}

extension Int64 {
  fileprivate func subtractingSaturated(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (self < 0 ? .min : .max) : difference
  }
}

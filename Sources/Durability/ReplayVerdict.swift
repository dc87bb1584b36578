// Settle
// SPDX-License-Identifier: Apache-2.0

/// Whether a value of an earlier process is still sent.
///
/// Within a boot the boot clock gives its age, which nobody can set. Across boots only the wall
/// clock can, and only while it is synchronised: a clock that starts at the time of the last
/// shutdown would make a value of hours ago seconds old.
package enum ReplayVerdict: Hashable, Sendable {
  /// Send it; this much of its time to live is left.
  case send(remaining: Duration)
  /// Do not send it.
  case expired(ExpiryReason)
  /// Its age is unknown until the wall clock is synchronised; judge it again later.
  case unknown

  /// 2025-01-01 00:00 UTC; an earlier wall clock has never been set.
  static let earliestPlausible: Int64 = 1_735_689_600_000
  /// How far a value may lie in the future before the wall clock counts as wrong.
  static let tolerance: Int64 = 2_000

  /// Judges a value that was accepted at `stamps`.
  package init(of stamps: JournalStamps, ttl: Duration, now: JournalClock) {
    let age: Int64
    if stamps.boot == now.stamps.boot {
      age = now.stamps.bootMilliseconds.subtractingSaturated(stamps.bootMilliseconds)
      guard age >= 0 else {
        self = .expired(.timeToLive)
        return
      }
    } else {
      // The value is older than this boot, whatever the wall clock says.
      let least = max(now.stamps.bootMilliseconds, 0)
      guard .milliseconds(least) < ttl else {
        self = .expired(.timeToLive)
        return
      }
      guard stamps.wallMilliseconds >= Self.earliestPlausible else {
        self = .expired(.clockNotSynchronised)
        return
      }
      let wallAge = now.stamps.wallMilliseconds.subtractingSaturated(stamps.wallMilliseconds)
      guard now.isSynchronised, now.stamps.wallMilliseconds >= Self.earliestPlausible,
        wallAge >= -Self.tolerance
      else {
        self = .unknown
        return
      }
      age = max(wallAge, least)
    }
    let remaining = ttl - .milliseconds(age)
    self = remaining > .zero ? .send(remaining: remaining) : .expired(.timeToLive)
  }
}

extension Int64 {
  fileprivate func subtractingSaturated(_ other: Int64) -> Int64 {
    let (difference, overflow) = subtractingReportingOverflow(other)
    return overflow ? (self < 0 ? .min : .max) : difference
  }
}

/// Why a value of an earlier process is not sent.
package enum ExpiryReason: Hashable, Sendable, CustomStringConvertible {
  /// Its time to live has passed.
  case timeToLive
  /// Its age is unknown: the wall clock is not synchronised, or was not when the value was
  /// accepted.
  case clockNotSynchronised

  package var description: String {
    switch self {
    case .timeToLive: "its time to live passed while the gateway did not run"
    case .clockNotSynchronised: "clock not synchronised"
    }
  }
}

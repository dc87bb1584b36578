// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut

/// A rate with a burst: one token a command.
///
/// Kept as the moment at which the bucket will be full again, in whole nanoseconds: nothing to
/// refill, and no rounding that adds up.
struct TokenBucket {
  private let interval: UInt64
  /// How far ``fullAt`` may lie ahead while a token is left.
  private let reach: UInt64
  private var fullAt: UInt64 = 0

  init(_ rate: LaneLimits.Rate) {
    interval = UInt64(min((1e9 / rate.perSecond).rounded(.up), 1e18))
    let (product, overflow) =
      interval.multipliedReportingOverflow(by: UInt64(max(rate.burst, 1) - 1))
    reach = overflow ? UInt64(Int64.max) : min(product, UInt64(Int64.max))
  }

  /// The same bucket with another limit: as many tokens are missing, as far as it has held them.
  func limited(to rate: LaneLimits.Rate, at now: Moment) -> Self {
    var bucket = Self(rate)
    if bucket.interval == interval, bucket.reach == reach { return self }
    guard fullAt > now.nanoseconds else { return bucket }
    let missing = (fullAt - now.nanoseconds + interval - 1) / interval
    let (wait, overflow) = min(missing, UInt64(max(rate.burst, 1)))
      .multipliedReportingOverflow(by: bucket.interval)
    bucket.fullAt = now.nanoseconds + (overflow ? UInt64(Int64.max) / 2 : wait)
    return bucket
  }

  /// Takes a token if there is one.
  mutating func take(at now: Moment) -> Bool {
    guard nextToken(after: now) <= now else { return false }
    fullAt = max(fullAt, now.nanoseconds) + interval
    return true
  }

  /// When the next token is there, never early; `now` if it is there already.
  func nextToken(after now: Moment) -> Moment {
    let ready = fullAt > reach ? fullAt - reach : 0
    return Moment(nanoseconds: max(ready, now.nanoseconds))
  }
}

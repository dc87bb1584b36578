// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// A rate with a burst: one token a command. `nil` rate never holds anything back.
struct TokenBucket {
  private let interval: Double
  private let burst: Double
  private var tokens: Double
  private var refilledAt = Moment.zero

  /// - Parameter rate: Tokens a second.
  init(rate: Double, burst: Int) {
    interval = 1e9 / rate
    self.burst = Double(max(burst, 1))
    tokens = self.burst
  }

  /// Takes a token if there is one.
  mutating func take(at now: Moment) -> Bool {
    refill(at: now)
    guard tokens >= 1 else { return false }
    tokens -= 1
    return true
  }

  /// When the next token is there, never early.
  mutating func nextToken(after now: Moment) -> Moment {
    refill(at: now)
    guard tokens < 1 else { return now }
    return Moment(nanoseconds: now.nanoseconds + UInt64(((1 - tokens) * interval).rounded(.up)))
  }

  private mutating func refill(at now: Moment) {
    guard now > refilledAt else { return }
    let elapsed = Double(now.nanoseconds - refilledAt.nanoseconds)
    // A billionth of a token absorbs rounding, so that a wake-up at the promised moment succeeds.
    tokens = min(burst, tokens + elapsed / interval + 1e-9)
    refilledAt = now
  }
}

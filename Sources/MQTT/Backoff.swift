// Settle
// SPDX-License-Identifier: Apache-2.0

/// How long to wait before the next attempt: doubling, jittered, reset by a stable connection.
struct Backoff: Hashable, Sendable {
  /// How long a connection must last for the next delay to start over.
  static let stability: Duration = .seconds(10)
  /// The delay after a refusal that needs a fix by the operator.
  static let slow: Duration = .seconds(60)

  private let range: ClosedRange<Duration>
  /// The next delay, before jitter.
  private var next: Duration

  init(range: ClosedRange<Duration>) {
    self.range = range
    next = range.lowerBound
  }

  /// The next delay: between half and one and a half of the doubled value, so that many clients do
  /// not reconnect at the same time.
  ///
  /// - Parameters:
  ///   - jitter: A random number in 0 ..< 1.
  ///   - isSlow: Whether the operator must fix the cause; the delay is then around a minute.
  /// - Returns: How long to wait.
  mutating func delay(jitter: Double, isSlow: Bool) -> Duration {
    let factor = 0.5 + jitter
    if isSlow { return max(Self.slow, range.upperBound) * factor }
    let delay = next
    next = min(next * 2, range.upperBound)
    return delay * factor
  }

  /// Records how long the lost connection lasted.
  mutating func lost(after life: Duration) {
    if life >= Self.stability { next = range.lowerBound }
  }
}

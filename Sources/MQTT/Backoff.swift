// Settle
// SPDX-License-Identifier: Apache-2.0

/// How long to wait before the next attempt: doubling, jittered, reset by a stable connection.
struct Backoff: Hashable, Sendable {
  /// How long a connection must have lived for the next delay to start over.
  static let stability: Duration = .seconds(10)
  /// The delay after a refusal that only a person can mend.
  static let slow: Duration = .seconds(60)

  private let range: ClosedRange<Duration>
  /// The next delay, before jitter.
  private var next: Duration

  init(range: ClosedRange<Duration>) {
    self.range = range
    next = range.lowerBound
  }

  /// The next delay: between half and one and a half of the doubled value, so that many clients do
  /// not come back in step.
  ///
  /// - Parameters:
  ///   - jitter: A random number in 0 ..< 1.
  ///   - isSlow: Whether the attempt was refused for good; the delay is then around a minute.
  /// - Returns: How long to wait from now on.
  mutating func delay(jitter: Double, isSlow: Bool) -> Duration {
    let factor = 0.5 + jitter
    if isSlow { return max(Self.slow, range.upperBound) * factor }
    let delay = next
    next = min(next * 2, range.upperBound)
    return delay * factor
  }

  /// Notes how long the connection that was just lost had lived.
  mutating func lost(after life: Duration) {
    if life >= Self.stability { next = range.lowerBound }
  }
}

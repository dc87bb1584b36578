// Settle
// SPDX-License-Identifier: Apache-2.0

/// Counts of a ``CommandStateMachine`` since the start.
package struct CommandStatistics: Sendable {
  package var changes: UInt64 = 0
  package var rejected: UInt64 = 0
  package var collapsed: UInt64 = 0
  package var unchanged: UInt64 = 0
  package var published: UInt64 = 0
  package var acknowledged: UInt64 = 0
  package var confirmed: UInt64 = 0
  package var failed: UInt64 = 0
  package var expired: UInt64 = 0
  /// The longest time between a value's deadline and its leaving the queue.
  package var worstLateness: Duration = .zero
  /// Those times.
  package var lateness = DurationHistogram(
    bounds: [100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 1_000_000]
      .map { .microseconds($0) }
  )

  /// Counts a value that leaves the queue so long after its deadline.
  mutating func record(lateness duration: Duration) {
    worstLateness = max(worstLateness, duration)
    lateness.record(duration)
  }
}

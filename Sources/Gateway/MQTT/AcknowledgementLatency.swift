// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import LastOut

/// Measures how long the broker takes to acknowledge a command.
struct AcknowledgementLatency {
  private(set) var histogram = DurationHistogram(
    bounds: [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000].map { .milliseconds($0) }
  )
  /// When the commands in flight were published, oldest first; as many as the window allows.
  private var inFlight: [(token: UInt64, at: Moment)] = []

  mutating func published(_ token: UInt64, at now: Moment) { inFlight.append((token, now)) }

  mutating func finished(_ token: UInt64, isAcknowledged: Bool, at now: Moment) {
    guard let place = inFlight.firstIndex(where: { $0.token == token }) else { return }
    let start = inFlight.remove(at: place).at
    if isAcknowledged { histogram.record(start.duration(to: now)) }
  }
}

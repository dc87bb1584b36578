// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut
package import Operations

/// Counts refusals by reason and logs them without flooding.
///
/// The first refusal of each reason is logged at once, then at most one line in ten seconds with the
/// count. Lines never contain parts of the request.
package struct RefusalLog {
  private struct Tally {
    var total: UInt64 = 0
    var unlogged: UInt64 = 0
    var loggedAt: Moment?
  }

  private var tallies: [String: Tally] = [:]
  private let interval = Duration.seconds(10)
  private let log: Logger

  package init(log: Logger) {
    self.log = log
  }

  /// Refusals since the start, by reason.
  package var totals: [String: UInt64] { tallies.mapValues(\.total) }

  package mutating func record(_ reason: String, peer: String, at now: Moment) {
    var tally = tallies[reason] ?? Tally()
    tally.total += 1
    tally.unlogged += 1
    if tally.loggedAt.map({ $0.duration(to: now) >= interval }) ?? true {
      log.warning(
        "HTTP request refused",
        [
          "reason": reason, "peer": peer, "count": String(tally.unlogged),
          "total": String(tally.total),
        ]
      )
      tally.loggedAt = now
      tally.unlogged = 0
    }
    tallies[reason] = tally
  }
}

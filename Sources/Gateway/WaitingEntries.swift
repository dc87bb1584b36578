// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What waits on one topic of a route.
typealias WaitingEntries = WaitingLine<RouteMachine.Entry>

extension WaitingEntries {
  /// Drops what has waited longer than `ttl`; returns how many that were.
  mutating func dropExpired(after ttl: Duration, at now: Moment) -> Int {
    var dropped = 0
    while let first, first.readyAt.duration(to: now) > ttl {
      removeFirst(1)
      dropped += 1
    }
    return dropped
  }
}

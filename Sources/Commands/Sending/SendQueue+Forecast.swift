// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What commands wait for, and when they will be sent.
extension SendQueue {
  /// What the command of `key` waits for.
  func waits(_ key: KeyIndex) -> PendingStatus.Waiting {
    if !isOnline(key) { return .offline }
    if isAsleep(key) { return .asleep }
    return awaitsAcknowledgement(key) ? .inFlight : .lane
  }

  /// When everything in a lane gets its token if nothing changes; empty without a connection.
  ///
  /// Takes time in proportion to everything that waits in lanes.
  func sendTimes(after now: Moment, ignoresLimits: Bool) -> [KeyIndex: Moment] {
    guard isConnected, lanes.count > 0 else { return [:] }
    return lanes.sendTimes(after: now, ignoresLimits: ignoresLimits) { key in
      companions(of: key).filter { self[$0] != nil }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What commands wait for, and when they will be sent.
extension SendQueue {
  /// What the command of `key` waits for.
  func waits(_ key: KeyIndex) -> PendingStatus.Waiting {
    if !isOnline(key) { return .offline }
    if awaitsRetained(key) { return .unknown }
    if isAsleep(key) { return .asleep }
    if awaitsAcknowledgement(key) { return .inFlight }
    return blockedRider(of: key).map(awaitsAcknowledgement) ?? false ? .inFlight : .lane
  }

  /// The lanes that have a limit, by name, with all actions that wait.
  package var laneStatuses: [LaneStatus] {
    var statuses = lanes.statuses
    for (key, count) in actions.counts {
      guard let name = lanes.name(ofDevice: facts[key].device),
        let place = statuses.firstIndex(where: { $0.name == name })
      else { continue }
      statuses[place].waiting += count
    }
    return statuses
  }

  /// When everything in a lane gets its token if nothing changes; empty without a connection.
  ///
  /// `companions` names the keys that are sent with another one, if they have commands. Takes time
  /// in proportion to everything that waits in lanes.
  func sendTimes(
    after now: Moment,
    ignoresLimits: Bool,
    companions: (KeyIndex) -> [KeyIndex]
  ) -> [KeyIndex: Moment] {
    guard isConnected, lanes.count > 0 else { return [:] }
    return lanes.sendTimes(after: now, ignoresLimits: ignoresLimits) { key in
      companions(key).filter { self[$0] != nil }
    }
  }
}

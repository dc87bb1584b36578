// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Notices that another client uses the same client id: the two then throw each other out for ever.
///
/// Brokers before MQTT 5's reason code say nothing but "connection lost", so what is noticed is
/// connections that die soon after each other without anything in flight.
struct TakeoverAlarm: Hashable, Sendable {
  /// A connection that died younger than this is counted.
  static let shortLife: Duration = .seconds(5)
  static let period: Duration = .seconds(60)
  static let losses = 3

  /// When the last short-lived connections were lost, oldest first.
  private var moments: [Moment] = []

  /// A connection was lost that had lived for `life`.
  ///
  /// - Returns: Whether it is time to back off and say so.
  mutating func lost(after life: Duration, wasIdle: Bool, at now: Moment) -> Bool {
    guard wasIdle, life < Self.shortLife else { return false }
    moments.append(now)
    moments.removeAll { $0.duration(to: now) > Self.period }
    return moments.count >= Self.losses
  }
}

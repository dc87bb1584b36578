// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Detects another client with the same client id: the two keep disconnecting each other.
///
/// MQTT 3.1.1 has no reason code for this. Several short connections in a row, lost with nothing in
/// flight, therefore count as such a conflict.
struct ClientIDConflict: Hashable, Sendable {
  /// The maximum duration of a short connection.
  static let shortLife: Duration = .seconds(5)
  static let period: Duration = .seconds(60)
  static let losses = 3

  /// When the last short-lived connections were lost, oldest first.
  private var moments: [Moment] = []

  /// Records a lost connection that had lived for `life`; returns whether a conflict is likely.
  mutating func isLikely(
    afterLife life: Duration,
    wasIdle: Bool,
    at now: Moment
  ) -> Bool {
    guard wasIdle, life < Self.shortLife else { return false }
    moments.append(now)
    moments.removeAll { $0.duration(to: now) > Self.period }
    return moments.count >= Self.losses
  }
}

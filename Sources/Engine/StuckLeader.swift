// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Notices a stream whose leader stores nothing any more, though it is there.
///
/// nats-server 2.9.10 has done so after elections: its followers no longer take what the leader sends, and
/// elect nobody else. Another leader ends that.
struct StuckLeader {
  /// How long writes may be without an answer, counted from the first that has waited in vain.
  static let patience = Duration.milliseconds(2500)
  /// How long an election may take before another one is asked for.
  static let pause = Duration.seconds(8)

  private var silentSince: Moment?
  private var askedAt: Moment?

  /// The leader has answered a write.
  mutating func answered() { silentSince = nil }

  /// A request was not answered in time; `true` if another leader should be asked for now.
  mutating func unanswered(at now: Moment) -> Bool {
    guard let since = silentSince else {
      silentSince = now
      return false
    }
    guard since.duration(to: now) >= Self.patience else { return false }
    if let askedAt, askedAt.duration(to: now) < Self.pause { return false }
    askedAt = now
    return true
  }
}

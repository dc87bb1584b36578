// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// For how long a member counts as alive without a renewal, on the monotonic clock of who looks.
///
/// No clock is compared with another's: a member counts from before it sent its last renewal, the
/// others from when they saw it, which is later.
package struct LeaseSettings: Hashable, Sendable {
  /// How long the others wait for a renewal before they evict: longer than the engine takes to
  /// elect a leader (4 to 5 s without writes were measured with NATS 2.9), so that an election
  /// moves nothing.
  package var length: Duration = .seconds(10)
  /// How long a member itself relies on its last renewal.
  package var trust: Duration = .seconds(8)
  /// The time between two renewals.
  package var renewal: Duration = .seconds(1)
  /// How long the others wait for a renewal after the broker has published the member's will.
  package var suspicion: Duration = .milliseconds(1500)
  /// The time between two members that evict a third one.
  package var turn: Duration = .milliseconds(40)
  /// The wait before something is read again, or written again after a failure.
  package var retry: Duration = .milliseconds(250)
  /// The wait before a log that no member can read is opened again.
  package var reopening: Duration = .seconds(60)

  package init() {}
}

/// A member's own lease.
struct Lease: Sendable {
  /// When the last renewal that was stored was sent; `nil` before the first.
  private(set) var renewedAt: Moment?
  /// When the next renewal is sent.
  private(set) var dueAt = Moment.zero

  /// Whether the member may rely on it.
  func isTrusted(_ settings: LeaseSettings, at now: Moment) -> Bool {
    renewedAt.map { now < $0.advanced(by: settings.trust) } ?? false
  }

  mutating func sent(_ settings: LeaseSettings, at now: Moment) {
    dueAt = now.advanced(by: settings.renewal)
  }

  mutating func renewed(sentAt: Moment) { renewedAt = max(renewedAt ?? sentAt, sentAt) }

  /// Asks for a renewal as soon as possible.
  mutating func hurry(at now: Moment) { dueAt = min(dueAt, now) }

  mutating func retry(at moment: Moment) { dueAt = moment }
}

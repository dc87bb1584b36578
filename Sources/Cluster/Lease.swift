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

/// How many partitions each member should have, and who takes which.
///
/// Every member calculates this from what it sees and acts for itself alone; compare-and-set
/// decides where two see different things.
package struct Assignment: Hashable, Sendable {
  /// What each member that takes partitions should have in the end.
  package private(set) var shares: [String: Int] = [:]
  /// Who should take the partitions that nobody has; none of those that nobody can read.
  package private(set) var takers: [Partition: String] = [:]
  /// The partitions that should get another owner; none while some are free.
  ///
  /// Theirs has more than its share, or takes none, and a member with less than its share can read
  /// them.
  package private(set) var movable: Set<Partition> = []

  /// - Parameters:
  ///   - members: Those that take partitions.
  ///   - unreadable: The partitions whose logs a member cannot read; it gets none of them.
  ///   - owners: Of each partition its owner, by number; `nil` where it is free. An owner that is
  ///     not in `members` keeps what it has until it gives it back or is evicted.
  package init(
    members: some Sequence<String>,
    unreadable: [String: Set<Partition>] = [:],
    owners: [String?]
  ) {
    var counts: [String: Int] = [:]
    for member in members { counts[member] = 0 }
    guard !counts.isEmpty else { return }
    for owner in owners { if let owner, counts[owner] != nil { counts[owner, default: 0] += 1 } }
    // Who has most keeps one more, so that as few as possible move.
    let ordered = counts.sorted { $0.value == $1.value ? $0.key < $1.key : $0.value > $1.value }
    let (least, rest) = owners.count.quotientAndRemainder(dividingBy: ordered.count)
    for (place, member) in ordered.enumerated() {
      shares[member.key] = place < rest ? least + 1 : least
    }
    let names = shares.keys.sorted()
    func spare(_ member: String) -> Int { (shares[member] ?? 0) - (counts[member] ?? 0) }
    func canRead(_ member: String, _ partition: Partition) -> Bool {
      !(unreadable[member]?.contains(partition) ?? false)
    }
    for number in owners.indices where owners[number] == nil {
      let partition = Partition(number)
      let able = names.filter { canRead($0, partition) }
      // Where those that can read it have their share, one of them gets more.
      let most = able.max { spare($0) < spare($1) }
      guard let taker = able.first(where: { spare($0) > 0 }) ?? most else { continue }
      takers[partition] = taker
      counts[taker, default: 0] += 1
    }
    guard takers.isEmpty else { return }
    let poor = names.filter { spare($0) > 0 }
    for (number, owner) in owners.enumerated() {
      guard let owner, shares[owner] == nil || spare(owner) < 0 else { continue }
      let others = shares[owner] == nil ? names : poor
      if others.contains(where: { canRead($0, Partition(number)) }) {
        movable.insert(Partition(number))
      }
    }
  }
}

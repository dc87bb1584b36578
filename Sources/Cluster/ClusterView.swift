// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// What a member knows of the others, from what it has read; never newer than the engine.
package struct ClusterView: Sendable {
  /// A member as this one sees it.
  package struct Peer: Hashable, Sendable {
    package var record: MemberRecord
    /// What the engine has.
    var stored: Predecessor
    /// When this member saw the record change.
    package var seenAt: Moment
    /// When the broker published its will after that; `nil` while nothing speaks against it.
    package var suspectedAt: Moment?
    /// How many renewals were seen after that; one may have been written before.
    var renewals = 0
  }

  /// The owner's record of a partition.
  struct Holding: Sendable {
    var record: OwnerRecord?
    /// What the engine has.
    var stored = Predecessor.none
  }

  package private(set) var peers: [String: Peer] = [:]
  private(set) var holdings: [Holding]

  init(partitions count: Int) { holdings = Array(repeating: Holding(), count: count) }

  /// Takes what was read or written; `false` when it, or something newer, is known.
  ///
  /// What is newer, the records themselves say. Revisions do not: after an election, the engine's
  /// new leader may give the newest records lower ones than the earlier leader (seen with
  /// nats-server 2.9.10), and accepts no write that expects the others. So a revision only says
  /// what a write expects, and a record that is known changes it.
  mutating func observe(
    _ key: RecordKey,
    _ record: ClusterRecord?,
    revision: UInt64,
    at now: Moment
  ) -> Bool {
    let stored = Predecessor(record, revision: revision)
    switch key {
    case .member(let name):
      guard let record = record?.member else { return false }
      let before = peers[name]
      guard record.follows(before?.record) else {
        if record == before?.record { peers[name]?.stored = stored }
        return false
      }
      peers[name] = Peer(record: record, stored: stored, seenAt: now)
      if let before, before.suspectedAt != nil, before.renewals == 0,
        before.record.incarnation == record.incarnation
      {
        peers[name]?.suspectedAt = now
        peers[name]?.renewals = 1
      }
    case .owner(let partition):
      guard holdings.indices.contains(partition.number), let record = record?.owner else {
        return false
      }
      let before = holdings[partition.number]
      guard record.follows(before.record) else {
        if record == before.record { holdings[partition.number].stored = stored }
        return false
      }
      holdings[partition.number] = Holding(record: record, stored: stored)
    }
    return true
  }

  /// The engine's leader has a record: that is what it compares with, whatever is known here.
  mutating func expect(_ stored: Predecessor, of key: RecordKey) {
    switch key {
    case .member(let name): peers[name]?.stored = stored
    case .owner(let partition):
      if holdings.indices.contains(partition.number) {
        holdings[partition.number].stored = stored
      }
    }
  }

  /// What a write of a key replaces.
  func predecessor(of key: RecordKey) -> Predecessor {
    switch key {
    case .member(let name): peers[name]?.stored ?? .none
    case .owner(let partition): holdings[partition.number].stored
    }
  }

  /// The broker says that a member's connection ended.
  mutating func suspect(_ member: String, at now: Moment) {
    guard peers[member]?.suspectedAt == nil else { return }
    peers[member]?.suspectedAt = now
    peers[member]?.renewals = 0
  }

  /// Restarts the wait for every renewal: this member was asleep, and has seen nothing meanwhile.
  mutating func trustAll(at now: Moment) {
    for name in peers.keys {
      peers[name]?.seenAt = now
      peers[name]?.suspectedAt = nil
    }
  }

  /// When a member counts as dead unless it writes before; `nil` for one that owns nothing.
  func endOfLease(of member: String, _ settings: LeaseSettings) -> Moment? {
    guard let peer = peers[member], peer.record.state.isPresent else { return nil }
    let end = peer.seenAt.advanced(by: settings.length)
    return peer.suspectedAt.map { min(end, $0.advanced(by: settings.suspicion)) } ?? end
  }

  /// What is known of who has a partition.
  private enum Tenure {
    case free
    case owned(by: String)
    /// It has written that it is the owner, and its presence, which it wrote before, was not read.
    case claimed(by: String)
  }

  private func tenure(of partition: Partition) -> Tenure {
    let holding = holdings[partition.number]
    guard let record = holding.record, let member = record.member else { return .free }
    guard let peer = peers[member] else { return .claimed(by: member) }
    if peer.record.incarnation != record.incarnation {
      return peer.record.beat < record.beat ? .claimed(by: member) : .free
    }
    return peer.record.state.isPresent ? .owned(by: member) : .free
  }

  /// The owner of a partition; `nil` where it is free.
  package func owner(of partition: Partition) -> String? {
    switch tenure(of: partition) {
    case .free: nil
    case .owned(let member), .claimed(let member): member
    }
  }

  /// The owner of a partition if its presence is not known and must be read.
  func unknownOwner(of partition: Partition) -> String? {
    if case .claimed(let member) = tenure(of: partition) { member } else { nil }
  }

  /// The incarnation of a member that is there; `nil` for any other.
  func incarnation(of member: String) -> UInt64? {
    peers[member].flatMap { $0.record.state.isPresent ? $0.record.incarnation : nil }
  }

  package var partitions: some RandomAccessCollection<Partition> {
    holdings.indices.lazy.map { Partition($0) }
  }

  /// The device files of most members that are there; of two equally frequent, those of who owns
  /// most, then the smaller digest.
  package var digest: UInt64? {
    var members: [UInt64: Int] = [:]
    var owned: [UInt64: Int] = [:]
    for peer in peers.values where peer.record.state.isPresent {
      members[peer.record.digest, default: 0] += 1
    }
    for partition in partitions {
      if let owner = owner(of: partition), let digest = peers[owner]?.record.digest {
        owned[digest, default: 0] += 1
      }
    }
    return members.max { left, right in
      let (first, second) = (owned[left.key] ?? 0, owned[right.key] ?? 0)
      return (left.value, first, right.key) < (right.value, second, left.key)
    }?.key
  }

  /// Who should have what, among the members that take partitions.
  ///
  /// The record of `name`, which asks, may not name all partitions yet that are `unreadable` to it.
  func assignment(for name: String, unreadable: Set<Partition>) -> Assignment {
    let digest = digest
    let takers = peers.filter {
      $0.value.record.state == .ready && $0.value.record.digest == digest
    }
    var excluded = takers.mapValues(\.record.unreadable)
    excluded[name] = unreadable
    return Assignment(
      members: takers.keys,
      unreadable: excluded,
      owners: partitions.map { owner(of: $0) }
    )
  }
}

extension MemberRecord.State {
  /// Whether a member in this state still has what it owns.
  package var isPresent: Bool {
    switch self {
    case .ready, .blocked, .leaving: true
    case .left, .evicted: false
    }
  }
}

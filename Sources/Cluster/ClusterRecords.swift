// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// What the members of a cluster share, by key; each is replaced only by a member that has read it
/// (compare-and-set on its revision), and counts on from what it has read.
package enum RecordKey: Hashable, Sendable {
  /// A member's presence.
  case member(String)
  /// Who drives a partition.
  case owner(Partition)
}

/// The order in which several are handled, so that equal inputs give equal outputs.
extension RecordKey: Comparable {
  package static func < (left: RecordKey, right: RecordKey) -> Bool {
    switch (left, right) {
    case (.member(let one), .member(let other)): one < other
    case (.owner(let one), .owner(let other)): one < other
    case (.member, .owner): true
    case (.owner, .member): false
    }
  }
}

/// A member's presence: it is alive as long as it writes this again.
package struct MemberRecord: Hashable, Sendable {
  package enum State: String, Hashable, Sendable {
    /// It takes partitions.
    case ready
    /// It is there and takes none: its broker is away.
    case blocked
    /// It gives its partitions away and ends.
    case leaving
    /// It has ended.
    case left
    /// Another member found it silent; whatever it had is free.
    case evicted
  }

  /// Random for each start of a process, and after each eviction another.
  package var incarnation: UInt64
  package var state: State
  /// Counts what was ever written for this name.
  package var beat: UInt64
  /// The digest of the member's device files: members with different files share no partition.
  package var digest: UInt64
  /// The partitions whose logs have an entry that the member cannot read.
  package var unreadable: Set<Partition>

  package init(
    incarnation: UInt64,
    state: State,
    beat: UInt64,
    digest: UInt64,
    unreadable: Set<Partition> = []
  ) {
    self.incarnation = incarnation
    self.state = state
    self.beat = beat
    self.digest = digest
    self.unreadable = unreadable
  }
}

/// Who drives a partition.
package struct OwnerRecord: Hashable, Sendable {
  /// `nil`: it was given back.
  package var member: String?
  /// The member's incarnation; that of an evicted one owns nothing.
  package var incarnation: UInt64
  /// The ``MemberRecord/beat`` that the member had written by then: a presence before that says
  /// nothing about this incarnation.
  package var beat: UInt64
  /// Grows with each owner.
  package var epoch: UInt64

  package init(member: String?, incarnation: UInt64, beat: UInt64, epoch: UInt64) {
    self.member = member
    self.incarnation = incarnation
    self.beat = beat
    self.epoch = epoch
  }
}

extension MemberRecord {
  /// An incarnation that has ended does not come back, whatever was counted.
  func follows(_ other: Self?) -> Bool {
    guard let other else { return true }
    if incarnation == other.incarnation, state.isPresent != other.state.isPresent {
      return !state.isPresent
    }
    return beat > other.beat
  }
}

extension OwnerRecord {
  /// A partition is given back once in an epoch, and not claimed afterwards.
  ///
  /// There should not be two claims in one epoch; if there are, the one that was read last counts.
  func follows(_ other: Self?) -> Bool {
    guard let other else { return true }
    return epoch == other.epoch ? self != other && other.member != nil : epoch > other.epoch
  }
}

/// The value of a key.
package enum ClusterRecord: Hashable, Sendable {
  case member(MemberRecord)
  case owner(OwnerRecord)

  /// Differs from that of any record of the key that it follows or that follows it.
  package var count: UInt64 {
    switch self {
    case .member(let record): record.beat
    case .owner(let record): 2 * record.epoch + (record.member == nil ? 1 : 0)
    }
  }

  package var member: MemberRecord? { if case .member(let record) = self { record } else { nil } }
  package var owner: OwnerRecord? { if case .owner(let record) = self { record } else { nil } }
}

extension Predecessor {
  /// A record as the engine has it; `nil`: there is none, or it cannot be read.
  init(_ record: ClusterRecord?, revision: UInt64) {
    self.init(revision: revision, count: record?.count ?? 0)
  }
}

/// The writes of records without an answer, at most one for each key.
struct RecordWrites: Sendable {
  struct Write: Sendable {
    var record: ClusterRecord
    var sentAt: Moment
    /// Whether it ended without being stored for certain: what is read next decides.
    var isUnsure = false
    /// When the record is read then; `nil` while it is being written or read.
    var readAt: Moment?
  }

  private var writes: [RecordKey: Write] = [:]

  func isBusy(_ key: RecordKey) -> Bool { writes[key] != nil }

  subscript(key: RecordKey) -> Write? { writes[key] }

  mutating func began(_ key: RecordKey, _ record: ClusterRecord, at now: Moment) {
    writes[key] = Write(record: record, sentAt: now)
  }

  mutating func ended(_ key: RecordKey) -> Write? { writes.removeValue(forKey: key) }

  /// Plans to read the record of a write whose outcome is unknown.
  mutating func read(_ key: RecordKey, at moment: Moment) {
    writes[key]?.isUnsure = true
    writes[key]?.readAt = moment
  }

  var nextRetry: Moment? { writes.values.compactMap(\.readAt).min() }

  /// The keys to read now.
  mutating func popDue(at now: Moment) -> [RecordKey] {
    var due: [RecordKey] = []
    for (key, write) in writes.sorted(by: { $0.key < $1.key }) {
      guard let moment = write.readAt, moment <= now else { continue }
      writes[key]?.readAt = nil
      due.append(key)
    }
    return due
  }
}

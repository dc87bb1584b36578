// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// One of the parts into which the devices of a cluster are divided; counts from zero.
///
/// Each partition is driven by one member at a time.
package struct Partition: Hashable, Comparable, Sendable, CustomStringConvertible {
  package let number: Int

  package init(_ number: Int) { self.number = number }

  /// The partition of a device, a route or an input: FNV-1a with 64 bits over the UTF-8 of its
  /// name, modulo `count`.
  ///
  /// Source: draft-eastlake-fnv, section 5. It never changes for the life of a cluster.
  package init(of name: String, count: Int) {
    var hash: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in name.utf8 {
      hash ^= UInt64(byte)
      hash &*= 0x100_0000_01b3
    }
    number = Int(hash % UInt64(count))
  }

  package static func < (left: Partition, right: Partition) -> Bool { left.number < right.number }

  package var description: String { "\(number)" }
}

/// How far a member is with a partition that it takes, drives or gives away.
package enum HeldPartition: Hashable, Sendable {
  /// The claim is being written.
  case claiming(epoch: UInt64)
  /// Its log is being closed for earlier owners, and read.
  case opening(epoch: UInt64)
  /// A renewal that is sent after `since` allows the session to connect.
  case mayConnect(epoch: UInt64, since: Moment)
  case connecting(epoch: UInt64)
  /// The session is connected; a renewal that is sent after `since` allows the first publish.
  case mayDrive(epoch: UInt64, since: Moment)
  case driving(epoch: UInt64)
  case handingOver(epoch: UInt64)
  /// That it is free is being written.
  case releasing(epoch: UInt64)

  package var epoch: UInt64 {
    switch self {
    case .claiming(let epoch), .opening(let epoch), .mayConnect(let epoch, _),
      .connecting(let epoch), .mayDrive(let epoch, _), .driving(let epoch),
      .handingOver(let epoch), .releasing(let epoch):
      epoch
    }
  }
}

/// What a write replaces or follows: it is stored only if nothing else was stored in between.
///
/// It says so twice, since neither is enough. The engine's leader compares the revision when a
/// write arrives, and stores it later: before nats-server 2.9.21, several that arrive within
/// milliseconds may all pass (upstream's issue 4320), and after an election revisions may differ.
/// The count is compared when a write is stored, on every server alike; but the engine remembers it
/// for half a minute only.
package struct Predecessor: Hashable, Sendable {
  /// The number by which the engine's leader has it; 0: there is none.
  package var revision: UInt64
  /// Its own count, which only grows; 0: there is none.
  package var count: UInt64

  package init(revision: UInt64, count: UInt64) {
    self.revision = revision
    self.count = count
  }

  package static let none = Self(revision: 0, count: 0)
}

/// What the host of a ``Membership`` must do.
package enum MembershipEffect: Hashable, Sendable {
  /// Replace a record if it is still the one given; report the outcome by
  /// ``Membership/wrote(_:_:at:)``.
  case write(RecordKey, ClusterRecord, after: Predecessor)
  /// Read a record; report it by ``Membership/read(_:_:at:)``.
  case read(RecordKey)
  /// Close the partition's log for earlier owners and read it; report the end by
  /// ``Membership/opened(_:epoch:at:)`` or ``Membership/openFailed(_:epoch:at:)``.
  case open(Partition, epoch: UInt64)
  /// Connect the partition's session at the broker; report it by ``Membership/connected(_:at:)``,
  /// its end by ``Membership/disconnected(_:at:)``.
  case connect(Partition)
  /// The partition's devices may be driven from now on.
  case drive(Partition)
  /// Nothing may be sent to the partition's devices until the next ``drive(_:)``; its session has
  /// ended.
  case pause(Partition)
  /// Settle what is in flight, leave what waits to the next owner, end the session; then
  /// ``Membership/handedOver(_:at:)``.
  case handOver(Partition)
  /// Forget the partition and end its session: another member drives it, or soon will.
  case abandon(Partition)
  case log(MembershipNotice)
  /// Another living member has this name: end.
  case refuse(String)
  /// All partitions were handed over: end.
  case left
}

/// What the log says about members.
package enum MembershipNotice: Hashable, Sendable {
  case joined(incarnation: UInt64)
  case evicting(member: String, isSuspected: Bool)
  /// This member was evicted, and joins again.
  case wasEvicted
  /// This member has other device files than most; it owns nothing.
  case otherDevices(digest: UInt64, expected: UInt64)
  case sameDevices
}

/// How a write ended.
package enum WriteOutcome: Hashable, Sendable {
  case stored(revision: UInt64)
  /// Something else was stored in between.
  case conflict
  /// No answer: it may be stored, now or later.
  case unknown
}

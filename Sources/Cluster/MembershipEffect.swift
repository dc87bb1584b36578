// Settle
// SPDX-License-Identifier: Apache-2.0

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

// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import LastOut
import Testing

/// An owner connects, and sends its first message after that, once a renewal was stored that it
/// sent afterwards: an earlier one says nothing about the time between.
struct MembershipTests {
  private let partition = Partition(0)
  private let own = RecordKey.member("a")

  private static func at(_ milliseconds: Int64) -> Moment {
    Moment.zero.advanced(by: .milliseconds(milliseconds))
  }

  /// A member alone that has claimed the only partition and read its log.
  private func opened() -> Membership {
    var member = Membership(name: "a", incarnation: 1, digest: 1, partitions: 1)
    member.readAll(at: Self.at(10))
    member.wrote(own, .stored(revision: 1), at: Self.at(20))
    member.wrote(.owner(partition), .stored(revision: 2), at: Self.at(30))
    _ = member.dequeueEffects()
    member.opened(partition, epoch: 1, at: Self.at(40))
    return member
  }

  /// How many renewals there are among effects, and what else.
  private func split(_ effects: [MembershipEffect]) -> (renewals: Int, others: [MembershipEffect]) {
    let isRenewal = { (effect: MembershipEffect) in
      if case .write(.member("a"), _, _) = effect { true } else { false }
    }
    return (effects.count(where: isRenewal), effects.filter { !isRenewal($0) })
  }

  @Test func `a renewal that was sent before the connection does not permit the first message`() {
    var member = opened()
    #expect(split(member.dequeueEffects()) == (1, []))
    member.wrote(own, .stored(revision: 3), at: Self.at(50))
    #expect(split(member.dequeueEffects()) == (0, [.connect(partition)]))
    member.advance(to: Self.at(1050))
    #expect(split(member.dequeueEffects()) == (1, []))
    member.connected(partition, at: Self.at(1060))
    member.wrote(own, .stored(revision: 4), at: Self.at(1070))
    #expect(split(member.dequeueEffects()) == (1, []))
    member.wrote(own, .stored(revision: 5), at: Self.at(1080))
    #expect(split(member.dequeueEffects()) == (0, [.drive(partition)]))
  }

  @Test func `a member alone takes over from its own earlier process, however busy its loop is`() {
    var earlier = Membership(name: "a", incarnation: 1, digest: 1, partitions: 1)
    earlier.readAll(at: Self.at(10))
    var left: ClusterRecord?
    for case .write(own, let record, _) in earlier.dequeueEffects() { left = record }
    var member = Membership(name: "a", incarnation: 2, digest: 1, partitions: 1)
    _ = member.observed(own, left, revision: 1, at: Self.at(20))
    member.readAll(at: Self.at(30))
    // The host asks after each batch, and a busy one has many in a second.
    var joined: Int64?
    for time in stride(from: 40 as Int64, to: 20_000, by: 40) where joined == nil {
      if let due = member.nextDeadline(after: Self.at(time)), due <= Self.at(time) {
        member.advance(to: Self.at(time))
      }
      for case .write(own, _, _) in member.dequeueEffects() { joined = time }
    }
    #expect(joined.map { (10_000...11_100).contains($0) } == true, "\(joined ?? -1)")
  }

  @Test func `a partition whose log cannot be read is given back, and tried again if nobody can`() {
    var member = Membership(name: "a", incarnation: 1, digest: 1, partitions: 1)
    member.readAll(at: Self.at(10))
    member.wrote(own, .stored(revision: 1), at: Self.at(20))
    member.wrote(.owner(partition), .stored(revision: 2), at: Self.at(30))
    _ = member.dequeueEffects()
    member.openFailed(partition, epoch: 1, at: Self.at(40))
    var given: [String?] = []
    var unreadable: [Set<Partition>] = []
    for case .write(_, let record, _) in member.dequeueEffects() {
      if let owner = record.owner { given.append(owner.member) }
      if let record = record.member { unreadable.append(record.unreadable) }
    }
    #expect(given == [nil] && unreadable == [[partition]])
    member.wrote(.owner(partition), .stored(revision: 3), at: Self.at(50))
    member.wrote(own, .stored(revision: 4), at: Self.at(60))
    #expect(member.held.isEmpty)
    var claims: [Int64] = []
    for second: Int64 in 1...70 {
      member.advance(to: Self.at(second * 1000))
      for case .write(let key, _, _) in member.dequeueEffects() {
        if key == own {
          member.wrote(own, .stored(revision: 10), at: Self.at(second * 1000 + 5))
        } else {
          claims.append(second)
        }
      }
    }
    #expect(claims == [62])
  }

  @Test func `a renewal that was sent before a session ended does not permit the next connection`()
  {
    var member = opened()
    _ = member.dequeueEffects()
    member.wrote(own, .stored(revision: 3), at: Self.at(50))
    member.advance(to: Self.at(1050))
    _ = member.dequeueEffects()
    member.disconnected(partition, at: Self.at(1060))
    #expect(split(member.dequeueEffects()) == (0, [.read(.owner(partition))]))
    member.wrote(own, .stored(revision: 4), at: Self.at(1070))
    #expect(split(member.dequeueEffects()) == (1, []))
    member.wrote(own, .stored(revision: 5), at: Self.at(1080))
    #expect(split(member.dequeueEffects()) == (0, [.connect(partition)]))
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Cluster

struct ClusterViewTests {
  @Test(arguments: [RecordKey.member("a"), .owner(Partition(3))])
  func `what is newer, a record says itself, and the engine's revision is what a write expects`(
    key: RecordKey
  ) {
    func record(_ number: UInt64) -> ClusterRecord {
      switch key {
      case .member:
        .member(MemberRecord(incarnation: 7, state: .ready, beat: number, digest: .max))
      case .owner: .owner(OwnerRecord(member: "a", incarnation: 1, beat: 1, epoch: number))
      }
    }
    var view = ClusterView(partitions: 8)
    let now = Moment(nanoseconds: 1)
    #expect([view.observe(key, record(1), revision: 322, at: now)] == [true])
    // A copy that has fallen behind is not believed.
    #expect([view.observe(key, record(0), revision: 318, at: now)] == [false])
    #expect(view.predecessor(of: key) == .init(revision: 322, count: record(1).count))
    #expect([view.observe(key, record(1), revision: 320, at: now)] == [false])
    #expect(view.predecessor(of: key) == .init(revision: 320, count: record(1).count))
    #expect([view.observe(key, record(2), revision: 321, at: now)] == [true])
    #expect(view.predecessor(of: key) == .init(revision: 321, count: record(2).count))
    // After an election, a newer record may have a lower revision.
    #expect([view.observe(key, record(3), revision: 319, at: now)] == [true])
    #expect(view.predecessor(of: key) == .init(revision: 319, count: record(3).count))
    // What the engine's leader has is what it compares with.
    view.expect(Predecessor(revision: 318, count: record(2).count), of: key)
    #expect(view.predecessor(of: key) == .init(revision: 318, count: record(2).count))
  }
  @Test func `of two claims in one epoch, the one counts that was read last`() {
    let partition = Partition(3)
    func record(_ member: String?) -> ClusterRecord {
      .owner(OwnerRecord(member: member, incarnation: 1, beat: 1, epoch: 9))
    }
    var view = ClusterView(partitions: 8)
    let now = Moment(nanoseconds: 1)
    let seen = ["a", "b", "b", nil, "a"].map {
      view.observe(.owner(partition), record($0), revision: 1, at: now)
    }
    #expect(seen == [true, true, false, true, false])
    #expect(view.owner(of: partition) == nil)
  }
}

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
    #expect(view.revision(of: key) == 322)
    #expect([view.observe(key, record(1), revision: 320, at: now)] == [false])
    #expect(view.revision(of: key) == 320)
    #expect([view.observe(key, record(2), revision: 321, at: now)] == [true])
    #expect(view.revision(of: key) == 321)
    // After an election, a newer record may have a lower revision.
    #expect([view.observe(key, record(3), revision: 319, at: now)] == [true])
    #expect(view.revision(of: key) == 319)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
import Testing

@Suite struct PartitionTests {
  /// Values of FNV-1a with 64 bits; source: draft-eastlake-fnv, appendix C; the last was worked
  /// out by another program.
  @Test(
    arguments: [
      ("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8),
      ("k\u{FC}che", 0x37ee_d8f0_8d30_9ee1),
    ] as [(String, UInt64)]
  )
  func `a name's partition is its FNV-1a hash modulo the number of partitions`(
    name: String,
    hash: UInt64
  ) {
    for count in [1, 64, 1021] {
      #expect(Partition(of: name, count: count).number == Int(hash % UInt64(count)))
    }
  }

  @Test func `alike names are spread over the partitions`() {
    let names = (0..<6400).map { "device-\($0)" }
    var counts = Array(repeating: 0, count: 64)
    for name in names { counts[Partition(of: name, count: 64).number] += 1 }
    #expect(counts.allSatisfy { (50...150).contains($0) }, "\(counts)")
  }

  @Test func `partitions are shared evenly, and as few as possible move`() {
    let names = ["a", "b", "c"]
    let owners = (0..<64).map { names[$0 % 3] as String? }
    let same = Assignment(members: names, owners: owners)
    #expect(same.takers.isEmpty)
    #expect(same.shares.values.sorted() == [21, 21, 22])
    // One has died: the others take what it had, and keep what they have.
    let left = Assignment(members: ["a", "b"], owners: owners.map { $0 == "c" ? nil : $0 })
    #expect(left.takers.count == 21)
    #expect(left.shares.values.sorted() == [32, 32])
    // One more: nothing is free yet, and each gives a part of its own.
    let more = Assignment(members: names + ["d"], owners: owners)
    #expect(more.takers.isEmpty)
    #expect(more.shares.values.sorted() == [16, 16, 16, 16])
    #expect(more.movable.count == 64)
  }

  /// As in an upgrade of one member after the other: `new` has written what the others cannot read.
  @Test func `a partition goes to a member that can read its log, and to nobody else`() {
    let unreadable = Set((0..<5).map { Partition($0) })
    let members = ["new", "old", "other"]
    func assignment(_ owners: [String?], _ members: [String]) -> Assignment {
      Assignment(
        members: members,
        unreadable: ["old": unreadable, "other": unreadable],
        owners: owners
      )
    }
    let first = assignment(Array(repeating: nil, count: 6), members)
    #expect(first.takers.filter { unreadable.contains($0.key) }.values.allSatisfy { $0 == "new" })
    #expect(first.takers[Partition(5)] != "new")
    // It has more than its share, and keeps what only it can read.
    let kept = assignment(Array(repeating: "new", count: 6), members)
    #expect(kept.shares["new"] == 2 && kept.movable == [Partition(5)])
    let alone = assignment(Array(repeating: nil, count: 6), ["old", "other"])
    #expect(alone.takers.keys.sorted() == [Partition(5)])
    // One that takes no partitions at the moment gives all that others can read.
    let blocked = assignment(Array(repeating: "new", count: 6), ["old", "other"])
    #expect(blocked.movable == [Partition(5)])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Cluster
@testable import Engine
import Testing

/// What members of a cluster read from the engine.
@Suite struct CodingTests {
  @Test(arguments: ["0", "7", "9223372036854775806"])
  func `the record of an owner has an epoch`(epoch: String) {
    #expect(record(epoch)?.epoch == UInt64(epoch))
  }

  @Test(arguments: ["-1", "9223372036854775807", "1.5", "null"])
  func `a record whose epoch or beat has no successor is not read`(number: String) {
    #expect(record(number) == nil)
    #expect(record("1", beat: number) == nil)
  }

  @Test(arguments: [(9_223_372_036_854, true), (9_223_372_036_855, false)])
  func `a frame has no duration that 64 bits of nanoseconds cannot hold`(
    age: UInt64,
    isRead: Bool
  ) {
    var writer = ByteWriter()
    writer.bytes = [1, 2, 1, 1, 0, 1]
    writer.append("lamp/power")
    writer.append(age)
    writer.append(1000)
    writer.append([UInt8]())
    writer.append(0)
    let frame = FrameCoding.frame(writer.bytes)
    #expect((frame != nil) == isRead)
    #expect(frame.map { FrameCoding.frame(FrameCoding.bytes($0)) == $0 } ?? true)
  }

  @Test(arguments: [[], [Partition(3), Partition(63)]] as [Set<Partition>])
  func `the record of a member names the partitions that it cannot read`(
    partitions: Set<Partition>
  ) {
    let member = MemberRecord(
      incarnation: 7,
      state: .ready,
      beat: 2,
      digest: 1,
      unreadable: partitions
    )
    let bytes = RecordCoding.bytes(.member(member))
    #expect(RecordCoding.record(bytes, of: .member("a")) == .member(member))
    // Earlier versions write no such list.
    let older = #"{"incarnation":"7","state":"ready","beat":2,"digest":"1"}"#
    #expect(RecordCoding.record(Array(older.utf8), of: .member("a"))?.member?.unreadable == [])
  }

  private func record(_ epoch: String, beat: String = "3") -> OwnerRecord? {
    let json = #"{"member":"a","incarnation":"7","beat":\#(beat),"epoch":\#(epoch)}"#
    return RecordCoding.record(Array(json.utf8), of: .owner(Partition(1)))?.owner
  }
}

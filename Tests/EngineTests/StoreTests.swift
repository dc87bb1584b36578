// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import Journal
import LastOut
import TestBroker
import Testing

/// What the core relies on, the same on the journal's file and on a partition's log with a real
/// server.
@Suite(.blocking, .serialized) struct StoreTests {
  private func text(_ owner: StoreFixture.Owner) -> [String] {
    owner.found.map { "\($0.key)=\($0.value)" }
  }

  @Test(arguments: StoreKind.allCases)
  func `a new store is empty`(kind: StoreKind) throws {
    let fixture = try StoreFixture(kind)
    let owner = try fixture.open()
    #expect(owner.found.isEmpty && owner.expired.isEmpty)
    try fixture.close(owner)
  }

  @Test(arguments: StoreKind.allCases)
  func `the next owner finds the newest value of each key, in the order of acceptance`(
    kind: StoreKind
  ) throws {
    let fixture = try StoreFixture(kind)
    let first = try fixture.open()
    #expect(try fixture.write([("a", "1"), ("b", "2"), ("c", "3")], by: first))
    let newer = JournalBatch(puts: [StoreFixture.entry("a", "4", 9)], removals: ["b"])
    guard case .done? = try fixture.perform(.commit(newer), by: first) else {
      Issue.record("not stored")
      return
    }
    try fixture.close(first)
    let second = try fixture.open()
    #expect(text(second) == ["c=3", "a=4"])
    try fixture.close(second)
    // Nobody has sent them: they are there for the one after, too.
    let third = try fixture.open()
    #expect(text(third) == ["c=3", "a=4"])
    try fixture.close(third)
  }

  @Test(arguments: StoreKind.allCases)
  func `removing what is not there, and removing twice, is no mistake`(kind: StoreKind) throws {
    let fixture = try StoreFixture(kind)
    let owner = try fixture.open()
    try fixture.write([("a", "1")], by: owner)
    for _ in 0..<2 {
      let result = try fixture.perform(
        .commit(JournalBatch(removals: ["a", "nothing"])),
        by: owner
      )
      guard case .done? = result else {
        Issue.record("\(String(describing: result))")
        return
      }
    }
    try fixture.close(owner)
    let next = try fixture.open()
    #expect(next.found.isEmpty)
    try fixture.close(next)
  }

  @Test(arguments: StoreKind.allCases)
  func `a rebuild leaves exactly its values`(kind: StoreKind) throws {
    let fixture = try StoreFixture(kind)
    let owner = try fixture.open()
    try fixture.write([("a", "1"), ("b", "2")], by: owner)
    let result = try fixture.perform(
      .rebuild([StoreFixture.entry("b", "3", 1), StoreFixture.entry("c", "4", 2)]),
      by: owner
    )
    guard case .done? = result else {
      Issue.record("\(String(describing: result))")
      return
    }
    #expect(try fixture.write([("d", "5")], by: owner))
    try fixture.close(owner)
    let next = try fixture.open()
    #expect(text(next) == ["b=3", "c=4", "d=5"])
    try fixture.close(next)
  }

  @Test(arguments: StoreKind.allCases)
  func `a value's time to live goes on, and one whose time is over is not sent`(
    kind: StoreKind
  ) throws {
    let fixture = try StoreFixture(kind)
    let owner = try fixture.open()
    let entries = [
      StoreFixture.entry("old", "1", 1, age: .seconds(40), ttl: .seconds(100)),
      StoreFixture.entry("over", "2", 2, age: .seconds(40), ttl: .seconds(30)),
    ]
    _ = try fixture.perform(.commit(JournalBatch(puts: entries)), by: owner)
    try fixture.close(owner)
    let next = try fixture.open()
    #expect(text(next) == ["old=1"])
    #expect(next.expired == ["over"])
    let left = try #require(next.found.first?.left)
    #expect(left <= .seconds(60) && left > .zero)
    try fixture.close(next)
  }

  @Test(arguments: StoreKind.allCases)
  func `five thousand values fit in one piece of work`(kind: StoreKind) throws {
    let fixture = try StoreFixture(kind)
    let owner = try fixture.open()
    #expect(try fixture.write((0..<5000).map { ("key-\($0)", "value \($0)") }, by: owner))
    let removals = (0..<4999).map { "key-\($0)" }
    _ = try fixture.perform(.commit(JournalBatch(removals: removals)), by: owner)
    try fixture.close(owner)
    let next = try fixture.open()
    #expect(text(next) == ["key-4999=value 4999"])
    try fixture.close(next)
  }

  @Test(arguments: StoreKind.allCases)
  func `a store that cannot write says so, and has everything after a rebuild`(
    kind: StoreKind
  ) throws {
    let fixture = try StoreFixture(kind)
    let owner = try fixture.open()
    try fixture.write([("a", "1")], by: owner)
    fixture.breakDown()
    #expect(try !fixture.write([("b", "2")], by: owner))
    try fixture.repair()
    let rebuild = JournalWork.rebuild([
      StoreFixture.entry("a", "1", 1), StoreFixture.entry("b", "2", 2),
    ])
    guard case .done? = try fixture.perform(rebuild, by: owner) else {
      Issue.record("not rebuilt")
      return
    }
    try fixture.close(owner)
    let next = try fixture.open()
    #expect(text(next) == ["a=1", "b=2"])
    try fixture.close(next)
  }

  @Test func `a second owner of a journal is refused`() throws {
    let fixture = try StoreFixture(.journal)
    let owner = try fixture.open()
    #expect(throws: JournalRefusal.self) { try fixture.open() }
    try fixture.close(owner)
  }

  @Test func `a second owner of a partition has what the first stored, and the first nothing more`()
    throws
  {
    let fixture = try StoreFixture(.cluster)
    let first = try fixture.open()
    try fixture.write([("a", "1")], by: first)
    let second = try fixture.open()
    #expect(text(second) == ["a=1"])
    #expect(try !fixture.write([("a", "2")], by: first))
    #expect(first.isLost)
    #expect(try fixture.write([("a", "3")], by: second))
    try fixture.close(second)
    let third = try fixture.open()
    #expect(text(third) == ["a=3"])
    try fixture.close(third)
  }

  @Test(arguments: [86_400, -86_400])
  func `an owner whose clock is a day off says so, and finds everything with its time to live`(
    error: Int
  ) throws {
    let fixture = try StoreFixture(.cluster)
    let first = try fixture.open()
    #expect(first.clockDifferences.isEmpty)
    #expect(try fixture.write([("a", "1")], by: first))
    try fixture.close(first)
    let second = try fixture.open(clockError: .seconds(error))
    #expect(second.clockDifferences.count == 1)
    let difference = try #require(second.clockDifferences.first)
    #expect((difference - .seconds(error)).components.seconds.magnitude < 60)
    #expect(text(second) == ["a=1"])
    let left = try #require(second.found.first).left
    #expect(left > .seconds(3500) && left <= .seconds(3600))
    #expect(try fixture.write([("b", "2")], by: second))
    try fixture.close(second)
    let third = try fixture.open()
    #expect(text(third) == ["a=1", "b=2"] && third.clockDifferences.isEmpty)
    #expect(third.found.allSatisfy { $0.left > .seconds(3500) && $0.left <= .seconds(3600) })
    try fixture.close(third)
  }
}

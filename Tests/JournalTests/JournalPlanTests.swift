// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut
import Testing

/// A moment so many milliseconds after the start.
func ms(_ milliseconds: Int) -> Moment {
  Moment.zero.advanced(by: .milliseconds(milliseconds))
}

extension JournalPlan {
  /// An empty plan with round figures: commits 100 ms apart, removals after 1 s, retries from 500 ms.
  static func fresh() -> JournalPlan { JournalPlan(contents: JournalContents()) }

  mutating func take(_ value: String, for key: String, at now: Moment) -> UInt64 {
    accept(Array(value.utf8), for: key, ttl: .seconds(60), at: now).sequence
  }

  /// What the next work writes and removes, as `key=value` and `-key`; `nil` without work.
  mutating func batch(at now: Moment) -> [String]? {
    switch nextWork(at: now) {
    case nil: nil
    case .commit(let batch): Self.texts(batch.puts) + batch.removals.map { "-\($0)" }
    case .rebuild(let entries): ["rebuild"] + Self.texts(entries)
    case .reopen: ["reopen"]
    }
  }

  private static func texts(_ entries: [JournalEntry]) -> [String] {
    entries.map { "\($0.key)=\(String(decoding: $0.value, as: UTF8.self))" }
  }

  mutating func takeNews() -> [JournalNews] {
    defer { news = [] }
    return news
  }
}

struct JournalPlanTests {
  @Test func `the first change commits at once`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(10))
    #expect(plan.nextDeadline == ms(10))
    #expect(plan.batch(at: ms(10)) == ["a=1"])
  }

  @Test func `of values that the owner keeps it is asked for the newest alone`() {
    var plan = JournalPlan.fresh()
    let key = plan.number(of: "a")
    var last: UInt64 = 0
    for _ in 0..<3 {
      let receipt = plan.accept(for: key, at: ms(10), expiresAt: ms(500))
      if last > 0 { plan.ended(key, last, at: ms(10), promptly: true) }
      last = receipt.sequence
    }
    var asked: [UInt64] = []
    let work = plan.nextWork(at: ms(10)) { asking, sequence in
      #expect(asking == key)
      asked.append(sequence)
      return Text(text: "kept")
    }
    #expect(asked == [last])
    guard case .commit(let batch)? = work else {
      Issue.record("nothing is written")
      return
    }
    #expect(batch.removals.isEmpty)
    let entry = JournalEntry(
      key: "a",
      sequence: last,
      value: Array("kept".utf8),
      origin: .accepted(at: ms(10)),
      ttl: .milliseconds(490)
    )
    #expect(batch.puts == [entry])
    #expect(plan.number(of: "a") == key)
    #expect(plan.rowExpiry(of: key) == ms(500))
  }

  /// A value that its owner keeps.
  private struct Text: JournalValue {
    var text: String
    var bytes: [UInt8] { Array(text.utf8) }
  }

  @Test func `later changes commit when the interval has passed since the last commit began`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    _ = plan.take("2", for: "a", at: ms(20))
    _ = plan.take("3", for: "b", at: ms(30))
    #expect(plan.nextDeadline == ms(100))
    #expect(plan.batch(at: ms(99)) == nil)
    #expect(plan.batch(at: ms(100)) == ["a=2", "b=3"])
  }

  @Test func `a commit that takes longer than the interval is waited for`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    _ = plan.take("2", for: "a", at: ms(20))
    #expect(plan.nextDeadline == nil)
    #expect(plan.batch(at: ms(2000)) == nil)
    plan.completed(.done, at: ms(2001))
    #expect(plan.nextDeadline == ms(100))
    #expect(plan.batch(at: ms(2001)) == ["a=2"])
  }

  @Test func `an urgent value does not wait for the interval`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    _ = plan.accept([], for: "b", ttl: .seconds(1), at: ms(20), isUrgent: true)
    #expect(plan.nextDeadline == ms(20))
  }

  @Test func `of several values of a key only the newest is written and all replies are due`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    let last = plan.take("2", for: "a", at: ms(0))
    #expect(plan.batch(at: ms(0)) == ["a=2"])
    #expect(plan.takeNews().isEmpty)
    plan.completed(.done, at: ms(3))
    #expect(plan.takeNews() == [.durable(through: last)])
  }

  @Test func `a value accepted during a commit waits for the next`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    let second = plan.take("2", for: "a", at: ms(1))
    plan.completed(.done, at: ms(3))
    #expect(plan.takeNews() == [.durable(through: first)])
    #expect(plan.holdsOlder("a", than: second, at: ms(4)))
    #expect(plan.batch(at: ms(100)) == ["a=2"])
    plan.completed(.done, at: ms(103))
    #expect(plan.takeNews() == [.durable(through: second)])
    #expect(!plan.holdsOlder("a", than: second, at: ms(104)))
  }

  @Test func `an acknowledged row is removed with the next commit`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    plan.sending("a", sequence: first)
    plan.finished("a", through: first, at: ms(50))
    #expect(plan.nextDeadline == ms(1050))
    _ = plan.take("2", for: "b", at: ms(200))
    #expect(plan.batch(at: ms(200)) == ["b=2", "-a"])
  }

  @Test func `an acknowledged row is removed after a second when nothing else is written`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    plan.finished("a", through: first, at: ms(50))
    #expect(plan.batch(at: ms(1049)) == nil)
    #expect(plan.batch(at: ms(1050)) == ["-a"])
    plan.completed(.done, at: ms(1055))
    #expect(plan.isIdle && plan.keyCount == 0 && plan.nextDeadline == nil)
  }

  @Test func `what is acknowledged before its commit never touches the disk`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    _ = plan.takeNews()
    let second = plan.take("2", for: "b", at: ms(10))
    #expect(plan.finished("b", through: second, at: ms(20)) == true)
    #expect(plan.batch(at: ms(100)) == nil)
    #expect(plan.takeNews() == [.durable(through: second)])
  }

  @Test func `while a key has a live row its newer value waits for a commit even if acknowledged`()
  {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    plan.finished("a", through: first, at: ms(5))
    let second = plan.take("2", for: "a", at: ms(10))
    _ = plan.takeNews()
    #expect(plan.finished("a", through: second, at: ms(20)) == false)
    #expect(plan.takeNews().isEmpty)
    // Not lazily: a reply waits for it.
    #expect(plan.batch(at: ms(100)) == ["-a"])
    plan.completed(.done, at: ms(103))
    #expect(plan.takeNews() == [.durable(through: second)])
  }

  @Test func `a value whose commit is under way counts as being on the disk`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    #expect(plan.finished("a", through: first, at: ms(1)) == false)
    plan.completed(.done, at: ms(3))
    #expect(plan.batch(at: ms(1001)) == ["-a"])
  }

  @Test func `cancelling a value brings back the one that is on its way`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    plan.sending("a", sequence: first)
    let second = plan.take("2", for: "a", at: ms(0))
    #expect(plan.batch(at: ms(0)) == ["a=2"])
    plan.completed(.done, at: ms(3))
    plan.withdrawn("a", through: second, at: ms(10))
    #expect(plan.batch(at: ms(100)) == ["a=1"])
  }

  /// While the newest waits for quiet, an older value may still be on its road, and leave.
  @Test func `a value that leaves after a newer one was accepted is kept when that is cancelled`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    let second = plan.take("2", for: "a", at: ms(0))
    plan.sending("a", sequence: first)
    #expect(plan.batch(at: ms(0)) == ["a=2"])
    plan.completed(.done, at: ms(3))
    plan.ended("a", second, at: ms(10), promptly: true)
    #expect(plan.batch(at: ms(100)) == ["a=1"])
    plan.completed(.done, at: ms(103))
    plan.ended("a", first, at: ms(110), promptly: false)
    #expect(plan.batch(at: ms(1110)) == ["-a"])
  }

  @Test func `a cancelled value's row goes with the next commit`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    plan.withdrawn("a", through: first, at: ms(10))
    #expect(plan.nextDeadline == ms(100))
    #expect(plan.batch(at: ms(100)) == ["-a"])
  }
}

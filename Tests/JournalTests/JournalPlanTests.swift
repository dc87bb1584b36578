// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut
import Testing

struct JournalPlanTests {
  @Test func `the first change commits at once`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(10))
    #expect(plan.nextDeadline == ms(10))
    #expect(plan.batch(at: ms(10)) == ["a=1"])
  }

  @Test func `of the changes of a key only the newest is encoded`() {
    var plan = JournalPlan(contents: JournalContents())
    let key = plan.number(of: "a")
    var last: UInt64 = 0
    for _ in 0..<3 {
      last = plan.accept(
        key,
        replacing: last,
        at: ms(10),
        expiresAt: ms(500),
        isUrgent: false
      )
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
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    _ = plan.accept("2", for: "a", at: ms(20))
    _ = plan.accept("3", for: "b", at: ms(30))
    #expect(plan.nextDeadline == ms(100))
    #expect(plan.batch(at: ms(99)) == nil)
    #expect(plan.batch(at: ms(100)) == ["a=2", "b=3"])
  }

  @Test func `no commit begins before the last one has ended`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    _ = plan.accept("2", for: "a", at: ms(20))
    #expect(plan.nextDeadline == nil)
    #expect(plan.batch(at: ms(2000)) == nil)
    plan.completed(.done, at: ms(2001))
    #expect(plan.nextDeadline == ms(100))
    #expect(plan.batch(at: ms(2001)) == ["a=2"])
  }

  @Test func `an urgent value does not wait for the interval`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    _ = plan.accept("2", for: "b", at: ms(20), isUrgent: true)
    #expect(plan.nextDeadline == ms(20))
  }

  @Test func `of several values of a key only the newest is written and all replies are due`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    let last = plan.accept("2", for: "a", at: ms(0))
    #expect(plan.batch(at: ms(0)) == ["a=2"])
    #expect(plan.dequeueEvents().isEmpty)
    plan.completed(.done, at: ms(3))
    #expect(plan.dequeueEvents() == [.durable(through: last)])
  }

  @Test func `a value accepted during a commit waits for the next`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    let second = plan.accept("2", for: "a", at: ms(1))
    plan.completed(.done, at: ms(3))
    #expect(plan.dequeueEvents() == [.durable(through: first)])
    #expect(plan.holdsOlder("a", than: second, at: ms(4)))
    #expect(plan.batch(at: ms(100)) == ["a=2"])
    plan.completed(.done, at: ms(103))
    #expect(plan.dequeueEvents() == [.durable(through: second)])
    #expect(!plan.holdsOlder("a", than: second, at: ms(104)))
  }

  @Test func `an acknowledged row is removed with the next commit`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    plan.sending("a", first)
    plan.ended("a", first, at: ms(50))
    #expect(plan.nextDeadline == ms(1050))
    _ = plan.accept("2", for: "b", at: ms(200))
    #expect(plan.batch(at: ms(200)) == ["b=2", "-a"])
  }

  @Test func `an acknowledged row is removed after a second when nothing else is written`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    plan.ended("a", first, at: ms(50))
    #expect(plan.batch(at: ms(1049)) == nil)
    #expect(plan.batch(at: ms(1050)) == ["-a"])
    plan.completed(.done, at: ms(1055))
    #expect(plan.isIdle && plan.isEmpty && plan.nextDeadline == nil)
  }

  @Test func `a value that is acknowledged before its commit is never written`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    _ = plan.dequeueEvents()
    let second = plan.accept("2", for: "b", at: ms(10))
    #expect(plan.ended("b", second, at: ms(20)) == true)
    #expect(plan.batch(at: ms(100)) == nil)
    #expect(plan.dequeueEvents() == [.durable(through: second)])
  }

  @Test func `while a key has a live row its newer value waits for a commit even if acknowledged`()
  {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    plan.ended("a", first, at: ms(5))
    let second = plan.accept("2", for: "a", at: ms(10))
    _ = plan.dequeueEvents()
    #expect(plan.ended("a", second, at: ms(20)) == false)
    #expect(plan.dequeueEvents().isEmpty)
    // Not lazily: a reply waits for it.
    #expect(plan.batch(at: ms(100)) == ["-a"])
    plan.completed(.done, at: ms(103))
    #expect(plan.dequeueEvents() == [.durable(through: second)])
  }

  @Test func `a value whose commit is in progress counts as being on the disk`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    #expect(plan.ended("a", first, at: ms(1)) == false)
    plan.completed(.done, at: ms(3))
    #expect(plan.batch(at: ms(1001)) == ["-a"])
  }

  @Test func `cancelling a value brings back the one that is in flight`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    plan.sending("a", first)
    let second = plan.accept("2", for: "a", at: ms(0))
    #expect(plan.batch(at: ms(0)) == ["a=2"])
    plan.completed(.done, at: ms(3))
    plan.ended("a", second, at: ms(10), promptly: true)
    #expect(plan.batch(at: ms(100)) == ["a=1"])
  }

  /// While the newest waits for quiet, an older value may still wait for its turn, and be sent.
  @Test func `a value that is sent after a newer one was accepted stays when that is cancelled`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    let second = plan.accept("2", for: "a", at: ms(0))
    plan.sending("a", first)
    #expect(plan.batch(at: ms(0)) == ["a=2"])
    plan.completed(.done, at: ms(3))
    plan.ended("a", second, at: ms(10), promptly: true)
    #expect(plan.batch(at: ms(100)) == ["a=1"])
    plan.completed(.done, at: ms(103))
    plan.ended("a", first, at: ms(110))
    #expect(plan.batch(at: ms(1110)) == ["-a"])
  }
}

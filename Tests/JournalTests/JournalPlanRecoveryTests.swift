// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability
import LastOut
import Testing

/// The plan while the disk fails, and when a value ends.
struct JournalPlanRecoveryTests {
  private let fault = JournalFault.diskFull

  // MARK: - Faults

  @Test func `after a failed commit nothing of it is reported durable`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(3))
    #expect(plan.dequeueEvents() == [.memoryOnly(through: first, fault: fault, overtaken: [])])
    #expect(plan.durableThrough == 0)
    #expect(plan.fault == fault)
  }

  @Test func `a key with a live row is named when its newer value could not be written`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    _ = plan.dequeueEvents()
    let second = plan.accept("2", for: "a", at: ms(10))
    _ = plan.batch(at: ms(100))
    plan.completed(.failed(fault), at: ms(103))
    #expect(plan.dequeueEvents() == [.memoryOnly(through: second, fault: fault, overtaken: ["a"])])
  }

  @Test func `while degraded a key with a live row is refused until the row has expired`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(3))  // The disk may have it all the same.
    #expect(plan.refusal(of: "a", at: ms(10)) == fault)
    #expect(plan.refusal(of: "b", at: ms(10)) == nil)
    #expect(plan.refusal(of: "a", at: ms(60_000)) == nil)
  }

  @Test func `attempts back off and recovery writes everything again`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(0))
    #expect(plan.nextDeadline == ms(500))
    #expect(plan.batch(at: ms(500)) == ["rebuild", "a=1"])
    plan.completed(.failed(fault), at: ms(510))
    #expect(plan.nextDeadline == ms(1510))
    let second = plan.accept("2", for: "b", at: ms(600))
    _ = plan.dequeueEvents()
    #expect(plan.batch(at: ms(1510)) == ["rebuild", "a=1", "b=2"])
    plan.completed(.done, at: ms(1520))
    #expect(plan.dequeueEvents() == [.recovered, .durable(through: second)])
    #expect(plan.fault == nil && plan.isIdle)
  }

  @Test func `a value accepted while the file is rebuilt is written after it`() {
    var plan = PlanUnderTest()
    _ = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(0))
    _ = plan.batch(at: ms(500))
    let second = plan.accept("2", for: "a", at: ms(501))
    plan.completed(.done, at: ms(510))
    #expect(plan.durableThrough == 1)
    #expect(plan.batch(at: ms(600)) == ["a=2"])
    plan.completed(.done, at: ms(610))
    #expect(plan.durableThrough == second)
  }

  @Test func `the wait between attempts stays below its limit`() {
    var plan = PlanUnderTest(JournalPlan(fault: fault, at: ms(0)))
    var waits: [Duration] = []
    var now = ms(0)
    for _ in 0..<9 {
      guard let next = plan.nextDeadline else { break }
      waits.append(now.duration(to: next))
      now = next
      #expect(plan.batch(at: now) == ["reopen"])
      plan.completed(.failed(fault), at: now)
    }
    #expect(waits.first == .milliseconds(500))
    #expect(waits.last == .seconds(30))
    #expect(waits.count == 9)
  }

  @Test func `a file that opens late replays its values unless newer ones were accepted`() {
    var plan = PlanUnderTest(JournalPlan(fault: .readOnly, at: ms(0)))
    _ = plan.dequeueEvents()
    _ = plan.accept("new", for: "a", at: ms(10))
    _ = plan.batch(at: ms(500))
    plan.completed(.reopened(JournalContents(entries: [stored("a"), stored("b")])), at: ms(510))
    #expect(plan.dequeueEvents() == [.recovered])
    #expect(plan.batch(at: ms(510))?.sorted() == ["a=new", "b=old"])
    plan.completed(.done, at: ms(520))
    plan.decideReplay(JournalClock(moment: ms(521), stamps: stamps(age: .seconds(1))))
    guard case .durable? = plan.plan.events.first,
      case .replay(let entry, _)? = plan.plan.events.last
    else {
      Issue.record("the events were \(plan.plan.events)")
      return
    }
    #expect(entry.key == "b")
  }

  @Test
  func `a file that opens late replays no value of a key whose newer value was accepted and sent`()
  {
    var plan = PlanUnderTest(JournalPlan(fault: .readOnly, at: ms(0)))
    let sequence = plan.accept("new", for: "a", at: ms(10))
    plan.sending("a", sequence)
    #expect(plan.ended("a", sequence, at: ms(20)) == true)
    #expect(plan.batch(at: ms(500)) == ["reopen"])
    plan.completed(.reopened(JournalContents(entries: [stored("a"), stored("b")])), at: ms(510))
    #expect(plan.batch(at: ms(510))?.sorted() == ["-a", "b=old"])
    plan.completed(.done, at: ms(520))
    _ = plan.dequeueEvents()
    plan.decideReplay(JournalClock(moment: ms(521), stamps: stamps(age: .seconds(1))))
    let events = plan.dequeueEvents()
    #expect(events.map { if case .replay(let entry, _) = $0 { entry.key } else { "" } } == ["b"])
  }

  @Test func `ending one value does not affect another of its key`() {
    var plan = PlanUnderTest()
    let first = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    #expect(plan.keeps("a"))
    plan.sending("a", first)
    let second = plan.accept("2", for: "a", at: ms(10))
    #expect(!plan.keeps("a"))
    // The second is cancelled while the first is in flight: the first stays on the disk.
    #expect(plan.ended("a", second, at: ms(20), promptly: true) == false)
    #expect(plan.batch(at: ms(100)) == nil)
    #expect(plan.keeps("a"))
    #expect(plan.ended("a", second, at: ms(110), promptly: true) == false)
    // Its row may be removed lazily, unless a crash must not send it.
    #expect(plan.ended("a", first, at: ms(120)) == false)
    #expect(plan.nextDeadline == ms(1120))
    #expect(plan.batch(at: ms(1120)) == ["-a"])
    plan.completed(.done, at: ms(1125))
    #expect(plan.isIdle && plan.isEmpty)
  }

  @Test func `a value that ends before it touches the disk needs no commit`() {
    var plan = PlanUnderTest()
    _ = plan.accept("0", for: "b", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    let sequence = plan.accept("1", for: "a", at: ms(10))
    plan.sending("a", sequence)
    #expect(plan.ended("a", sequence, at: ms(11)) == true)
    #expect(plan.batch(at: ms(100)) == nil)
    #expect(plan.durableThrough == sequence)
  }

  @Test func `a value that is replaced promptly is removed from the disk with the next commit`() {
    var plan = PlanUnderTest()
    let sequence = plan.accept("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    #expect(plan.ended("a", sequence, at: ms(20), promptly: true) == false)
    #expect(plan.nextDeadline == ms(100))
    #expect(plan.batch(at: ms(100)) == ["-a"])
  }

  // MARK: - Fixtures

  private static let written = JournalStamps(
    boot: BootIdentifier(high: 1, low: 2),
    bootMilliseconds: 1000,
    wallMilliseconds: 1_800_000_000_000
  )

  private func stored(_ key: String, sequence: UInt64 = 500) -> JournalEntry {
    JournalEntry(
      key: key,
      sequence: sequence,
      value: Array("old".utf8),
      origin: .stored(Self.written),
      ttl: .seconds(60)
    )
  }

  private func stamps(age: Duration) -> JournalStamps {
    var result = Self.written
    result.bootMilliseconds += age.components.seconds * 1000
    return result
  }
}

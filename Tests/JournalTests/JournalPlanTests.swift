// Settle
// SPDX-License-Identifier: Apache-2.0

import Journal
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
  private let fault = JournalFault.diskFull

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

  @Test func `a newer value that is cancelled takes one that nobody has taken up with it`() {
    var plan = JournalPlan(contents: JournalContents(entries: [stored("a", sequence: 1)]))
    let second = plan.take("2", for: "a", at: ms(0))
    plan.ended("a", second, at: ms(0), promptly: true)
    #expect(plan.batch(at: ms(0)) == ["-a"])
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

  // MARK: - Faults

  @Test func `after a failed commit nothing of it is reported durable`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(3))
    #expect(plan.takeNews() == [.memoryOnly(through: first, fault: fault, overtaken: [])])
    #expect(plan.durableThrough == 0)
    #expect(plan.accept([], for: "b", ttl: .seconds(1), at: ms(4)).fault == fault)
  }

  @Test func `a key with a live row is named when its newer value could not be written`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(3))
    _ = plan.takeNews()
    let second = plan.take("2", for: "a", at: ms(10))
    _ = plan.batch(at: ms(100))
    plan.completed(.failed(fault), at: ms(103))
    #expect(plan.takeNews() == [.memoryOnly(through: second, fault: fault, overtaken: ["a"])])
  }

  @Test func `while degraded a key with a live row is refused until the row has expired`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(3))  // The disk may have it all the same.
    #expect(plan.refusal(of: "a", at: ms(10)) == fault)
    #expect(plan.refusal(of: "b", at: ms(10)) == nil)
    #expect(plan.refusal(of: "a", at: ms(60_000)) == nil)
  }

  @Test func `attempts back off and recovery writes everything anew`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(0))
    #expect(plan.nextDeadline == ms(500))
    #expect(plan.batch(at: ms(500)) == ["rebuild", "a=1"])
    plan.completed(.failed(fault), at: ms(510))
    #expect(plan.nextDeadline == ms(1510))
    let second = plan.take("2", for: "b", at: ms(600))
    _ = plan.takeNews()
    #expect(plan.batch(at: ms(1510)) == ["rebuild", "a=1", "b=2"])
    plan.completed(.done, at: ms(1520))
    #expect(plan.takeNews() == [.recovered, .durable(through: second)])
    #expect(plan.fault == nil && plan.isIdle)
  }

  @Test func `a value accepted while the file is rebuilt is written after it`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(fault), at: ms(0))
    _ = plan.batch(at: ms(500))
    let second = plan.take("2", for: "a", at: ms(501))
    plan.completed(.done, at: ms(510))
    #expect(plan.durableThrough == 1)
    #expect(plan.batch(at: ms(600)) == ["a=2"])
    plan.completed(.done, at: ms(610))
    #expect(plan.durableThrough == second)
  }

  @Test func `the wait between attempts stays below its limit`() {
    var plan = JournalPlan(fault: fault, at: ms(0))
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

  @Test func `a file that opens late gives its values unless newer ones were accepted`() {
    var plan = JournalPlan(fault: .readOnly, at: ms(0))
    _ = plan.takeNews()
    _ = plan.take("new", for: "a", at: ms(10))
    _ = plan.batch(at: ms(500))
    plan.completed(.reopened(JournalContents(entries: [stored("a"), stored("b")])), at: ms(510))
    #expect(plan.takeNews() == [.recovered])
    #expect(plan.batch(at: ms(510))?.sorted() == ["a=new", "b=old"])
    plan.completed(.done, at: ms(520))
    plan.decideReplay(JournalClock(moment: ms(521), stamps: stamps(age: .seconds(1))))
    guard case .durable? = plan.news.first, case .replay(let entry, _)? = plan.news.last else {
      Issue.record("the news were \(plan.news)")
      return
    }
    #expect(entry.key == "b")
  }

  @Test func `a file that opens late gives no value of a key that has taken and sent a newer one`()
  {
    var plan = JournalPlan(fault: .readOnly, at: ms(0))
    let sequence = plan.take("new", for: "a", at: ms(10))
    plan.sending("a", sequence: sequence)
    #expect(plan.ended("a", sequence, at: ms(20), promptly: false) == true)
    #expect(plan.batch(at: ms(500)) == ["reopen"])
    plan.completed(.reopened(JournalContents(entries: [stored("a"), stored("b")])), at: ms(510))
    #expect(plan.batch(at: ms(510))?.sorted() == ["-a", "b=old"])
    plan.completed(.done, at: ms(520))
    _ = plan.takeNews()
    plan.decideReplay(JournalClock(moment: ms(521), stamps: stamps(age: .seconds(1))))
    let news = plan.takeNews()
    #expect(news.map { if case .replay(let entry, _) = $0 { entry.key } else { "" } } == ["b"])
  }

  @Test func `ending one value leaves another of its key alone`() {
    var plan = JournalPlan.fresh()
    let first = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    #expect(plan.keeps("a"))
    plan.sending("a", sequence: first)
    let second = plan.take("2", for: "a", at: ms(10))
    #expect(!plan.keeps("a"))
    // The second is cancelled while the first is on its way: the first stays on the disk.
    #expect(plan.ended("a", second, at: ms(20), promptly: true) == false)
    #expect(plan.batch(at: ms(100)) == nil)
    #expect(plan.keeps("a"))
    #expect(plan.ended("a", second, at: ms(110), promptly: true) == false)
    // Its row may be removed lazily, unless a crash must not send it.
    #expect(plan.ended("a", first, at: ms(120), promptly: false) == false)
    #expect(plan.nextDeadline == ms(1120))
    #expect(plan.batch(at: ms(1120)) == ["-a"])
    plan.completed(.done, at: ms(1125))
    #expect(plan.isIdle && plan.keyCount == 0)
  }

  @Test func `what is over before it touches the disk needs no commit`() {
    var plan = JournalPlan.fresh()
    _ = plan.take("0", for: "b", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    let sequence = plan.take("1", for: "a", at: ms(10))
    plan.sending("a", sequence: sequence)
    #expect(plan.ended("a", sequence, at: ms(11), promptly: false) == true)
    #expect(plan.batch(at: ms(100)) == nil)
    #expect(plan.durableThrough == sequence)
  }

  @Test func `a value that is replaced promptly leaves the disk with the next commit`() {
    var plan = JournalPlan.fresh()
    let sequence = plan.take("1", for: "a", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.done, at: ms(5))
    #expect(plan.ended("a", sequence, at: ms(20), promptly: true) == false)
    #expect(plan.nextDeadline == ms(100))
    #expect(plan.batch(at: ms(100)) == ["-a"])
  }

  @Test func `a value that was found at the start is replayed once and then removed`() {
    var plan = JournalPlan(contents: JournalContents(entries: [stored("a", sequence: 7)]))
    plan.decideReplay(JournalClock(moment: ms(0), stamps: stamps(age: .seconds(59))))
    #expect(
      plan.takeNews() == [.replay(stored("a", sequence: 7), remaining: .seconds(1))]
    )
    plan.decideReplay(JournalClock(moment: ms(1), stamps: stamps(age: .seconds(59))))
    #expect(plan.takeNews().isEmpty && !plan.awaitsReplay)
    plan.finished("a", through: 7, at: ms(10))
    #expect(plan.batch(at: ms(1010)) == ["-a"])
    #expect(plan.take("x", for: "a", at: ms(1011)) == 8)
  }

  @Test func `values whose age cannot be told are dropped after a minute`() {
    var plan = JournalPlan(contents: JournalContents(entries: [stored("a", sequence: 1)]))
    let unset = JournalStamps(
      boot: BootIdentifier(high: 9, low: 9),
      bootMilliseconds: 5,
      wallMilliseconds: 1000
    )
    plan.decideReplay(JournalClock(moment: ms(0), stamps: unset))
    #expect(plan.takeNews().isEmpty && plan.awaitsReplay)
    plan.decideReplay(JournalClock(moment: ms(59_999), stamps: unset))
    #expect(plan.takeNews().isEmpty)
    plan.decideReplay(JournalClock(moment: ms(60_000), stamps: unset))
    #expect(plan.takeNews() == [.expired(stored("a", sequence: 1))])
    #expect(plan.batch(at: ms(61_000)) == ["-a"])
  }

  @Test func `a value that a newer one replaced before its replay is not replayed`() {
    var plan = JournalPlan(contents: JournalContents(entries: [stored("a", sequence: 1)]))
    _ = plan.take("new", for: "a", at: ms(0))
    plan.decideReplay(JournalClock(moment: ms(1), stamps: stamps(age: .seconds(1))))
    #expect(plan.takeNews().isEmpty)
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

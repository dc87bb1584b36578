// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import Durability

/// The plan and the values of an earlier process.
struct JournalPlanReplayTests {
  private let boot = BootIdentifier(high: 1, low: 2)
  private let nextBoot = BootIdentifier(high: 3, low: 4)

  private func stored(_ key: String = "a", sequence: UInt64 = 1, ttl: Duration = .seconds(600))
    -> JournalEntry
  {
    JournalEntry(
      key: key,
      sequence: sequence,
      value: Array("old".utf8),
      origin: .stored(
        JournalStamps(boot: boot, bootMilliseconds: 1000, wallMilliseconds: 1_800_000_000_000)
      ),
      ttl: ttl
    )
  }

  private func found(_ entries: JournalEntry...) -> PlanUnderTest {
    PlanUnderTest(JournalPlan(contents: JournalContents(entries: entries)))
  }

  /// A reading in the boot of the values, `age` after they were accepted.
  private func sameBoot(at moment: Moment, age: Duration) -> JournalClock {
    JournalClock(
      moment: moment,
      stamps: JournalStamps(
        boot: boot,
        bootMilliseconds: 1000 + age.wholeMilliseconds,
        wallMilliseconds: 0
      ),
      isSynchronised: false
    )
  }

  /// A reading in the boot after it, which began 2 s before the first moment; the wall clock says
  /// that the values are `age` old.
  private func nextBoot(
    at moment: Moment,
    age: Duration,
    isSynchronised: Bool
  ) -> JournalClock {
    JournalClock(
      moment: moment,
      stamps: JournalStamps(
        boot: nextBoot,
        bootMilliseconds: 2000 + Moment.zero.duration(to: moment).wholeMilliseconds,
        wallMilliseconds: 1_800_000_000_000 + age.wholeMilliseconds
      ),
      isSynchronised: isSynchronised
    )
  }

  // MARK: - Within a boot

  @Test func `a value of an earlier process is replayed once and removed when it has ended`() {
    var plan = found(stored(sequence: 7))
    #expect(plan.replayDeadline == .zero)
    plan.decideReplay(sameBoot(at: ms(0), age: .seconds(599)))
    #expect(plan.dequeueEvents() == [.replay(stored(sequence: 7), remaining: .seconds(1))])
    #expect(!plan.awaitsReplay && plan.replayDeadline == nil)
    plan.decideReplay(sameBoot(at: ms(1), age: .seconds(599)))
    #expect(plan.dequeueEvents().isEmpty)
    plan.ended("a", 7, at: ms(10))
    #expect(plan.batch(at: ms(1010)) == ["-a"])
    #expect(plan.accept("x", for: "a", at: ms(1011)) == 8)
  }

  @Test func `a value that a newer one replaced before its replay is not replayed`() {
    var plan = found(stored())
    _ = plan.accept("new", for: "a", at: ms(0))
    plan.decideReplay(sameBoot(at: ms(1), age: .seconds(1)))
    #expect(plan.dequeueEvents().isEmpty)
  }

  @Test func `cancelling a newer value does not bring back one that was not replayed yet`() {
    var plan = found(stored())
    let second = plan.accept("2", for: "a", at: ms(0))
    plan.ended("a", second, at: ms(0), promptly: true)
    #expect(plan.batch(at: ms(0)) == ["-a"])
  }

  // MARK: - Across boots

  /// The clock returns 5 s after the value, though eight hours have passed.
  @Test func `a value of an earlier boot is held until the clock is synchronised`() {
    var plan = found(stored("a"), stored("b", sequence: 2, ttl: .seconds(86_400)))
    for second in 0...3 {
      let now = ms(second * 1000)
      #expect(plan.replayDeadline.map { $0 <= now } == true)
      plan.decideReplay(nextBoot(at: now, age: .seconds(5 + second), isSynchronised: false))
      #expect(plan.dequeueEvents().isEmpty)
    }
    plan.decideReplay(nextBoot(at: ms(3500), age: .seconds(28_800), isSynchronised: true))
    #expect(
      plan.dequeueEvents() == [
        .expired(stored("a"), .timeToLive),
        .replay(stored("b", sequence: 2, ttl: .seconds(86_400)), remaining: .seconds(57_600)),
      ]
    )
    #expect(plan.replayDeadline == nil)
  }

  @Test func `a clock that is synchronised in time lets a fresh value through`() {
    var plan = found(stored())
    plan.decideReplay(nextBoot(at: ms(0), age: .seconds(5), isSynchronised: false))
    plan.decideReplay(nextBoot(at: ms(59_000), age: .seconds(64), isSynchronised: true))
    #expect(plan.dequeueEvents() == [.replay(stored(), remaining: .seconds(536))])
  }

  @Test func `a value is held for a minute at most`() {
    var plan = found(stored())
    plan.decideReplay(nextBoot(at: ms(0), age: .seconds(5), isSynchronised: false))
    plan.decideReplay(nextBoot(at: ms(59_900), age: .seconds(65), isSynchronised: false))
    #expect(plan.dequeueEvents().isEmpty)
    #expect(plan.replayDeadline == ms(60_000))
    plan.decideReplay(nextBoot(at: ms(60_000), age: .seconds(65), isSynchronised: false))
    #expect(plan.dequeueEvents() == [.expired(stored(), .clockNotSynchronised)])
    #expect(plan.replayDeadline == nil)
    #expect(plan.batch(at: ms(61_000)) == ["-a"])
  }

  @Test func `a value is never held past its time to live`() {
    let entry = stored(ttl: .milliseconds(2700))
    var plan = found(entry)
    plan.decideReplay(nextBoot(at: ms(0), age: .zero, isSynchronised: false))
    #expect(plan.dequeueEvents().isEmpty)
    #expect(plan.replayDeadline == ms(700))
    plan.decideReplay(nextBoot(at: ms(700), age: .zero, isSynchronised: false))
    #expect(plan.dequeueEvents() == [.expired(entry, .clockNotSynchronised)])
  }

  @Test func `a value whose time to live is shorter than this boot expires at once`() {
    let entry = stored(ttl: .seconds(1))
    var plan = found(entry)
    plan.decideReplay(nextBoot(at: ms(0), age: .zero, isSynchronised: false))
    #expect(plan.dequeueEvents() == [.expired(entry, .timeToLive)])
  }

  @Test func `a held value is replaced by a newer one`() {
    var plan = found(stored())
    plan.decideReplay(nextBoot(at: ms(0), age: .zero, isSynchronised: false))
    _ = plan.accept("new", for: "a", at: ms(500))
    plan.decideReplay(nextBoot(at: ms(1000), age: .seconds(1), isSynchronised: true))
    #expect(plan.dequeueEvents().isEmpty)
    #expect(plan.batch(at: ms(1000)) == ["a=new"])
  }

  @Test func `a held value stays in the file, also when that is rebuilt`() {
    var plan = found(stored())
    plan.decideReplay(nextBoot(at: ms(0), age: .zero, isSynchronised: false))
    #expect(plan.keeps("a"))
    _ = plan.accept("1", for: "b", at: ms(0))
    _ = plan.batch(at: ms(0))
    plan.completed(.failed(.diskFull), at: ms(1))
    #expect(plan.batch(at: ms(501)) == ["rebuild", "a=old", "b=1"])
  }

  @Test func `nothing is left to decide once the last value that was taken over is forgotten`() {
    var plan = JournalPlan(contents: JournalContents())
    plan.takeOver([stored("a"), stored("b")], at: ms(5))
    plan.forget(plan.number(of: "a"))
    #expect(plan.replayDeadline == ms(5))
    plan.forget(plan.number(of: "b"))
    #expect(plan.replayDeadline == nil)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Synchronization
import Testing

/// Known defects of other libraries with timers, memory and threads.
@Suite struct PitfallTests {
  private let clock = LastOutTestClock()
  private let log = Log()

  @Test func `lodash 4074: a flush removes the timer`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "k") { [log] in log("run") }
    queue.flush(forKey: "k")
    #expect(clock.nextDeadline == nil)
    clock.advance(by: .seconds(10))
    #expect(log.lines == ["run"])
  }

  @Test func `lodash 4648: executePendingTasks removes the timer`() {
    let queue = clock.queue()
    for key in ["a", "b", "c"] { queue.enqueue(forKey: key) { [log] in log(key) } }
    queue.executePendingTasks()
    #expect(clock.nextDeadline == nil)
    #expect(log.lines.sorted() == ["a", "b", "c"])
  }

  @Test func `swift 60441: a cancelled task frees its captures at once, not at its deadline`() {
    let queue = clock.queue()
    weak var captured: Captured?
    do {
      let object = Captured()
      captured = object
      queue.enqueue(forKey: "k") { object.use() }
    }
    #expect(captured != nil)
    #expect(queue.cancel(forKey: "k") == .cancelled)
    #expect(captured == nil)
  }

  @Test func `prebid-mobile-ios 1311: a replaced task frees its captures at once`() {
    let queue = clock.queue()
    weak var captured: Captured?
    do {
      let object = Captured()
      captured = object
      queue.enqueue(forKey: "k") { object.use() }
    }
    queue.enqueue(forKey: "k") {}
    #expect(captured == nil)
  }

  @Test func `swift-async-algorithms 174: a capture whose end calls the queue does not deadlock`() {
    let queue = clock.queue()
    final class Caller: Sendable {
      let queue: LastOutQueue
      init(_ queue: LastOutQueue) { self.queue = queue }
      deinit { queue.enqueue(forKey: "other") {} }
    }
    do {
      let caller = Caller(queue)
      queue.enqueue(forKey: "k") { withExtendedLifetime(caller) {} }
    }
    queue.enqueue(forKey: "k") {}
    #expect(queue.pendingKeys.sorted() == ["k", "other"])
  }

  @Test func `rxjs 5309: keys that were used once cost no memory beyond their index`() {
    var core = LastOutCore<Int>(policy: Policy(delay: .nanoseconds(10)), capacity: 64)
    for key in Int32(0)..<50_000 {
      let now = Moment(nanoseconds: UInt64(key) * 20)
      core.enqueue(1, for: KeyIndex(key), at: now)
      // Half of them are flushed, so that their bursts outlive their runs.
      if key % 2 == 0 {
        _ = core.flush(KeyIndex(key), at: now)
      } else {
        _ = core.nextRun(at: now.advanced(by: .nanoseconds(10)))
      }
      core.finish(KeyIndex(key), at: now.advanced(by: .nanoseconds(10)))
    }
    #expect(core.slotCount <= 64)
  }

  @Test func `rxdart 606: after a peak the memory shrinks again`() {
    var core = LastOutCore<Int>(policy: Policy(delay: .zero), capacity: 64)
    for key in Int32(0)..<10_000 { core.enqueue(1, for: KeyIndex(key), at: .zero) }
    _ = core.cancelAll()
    for _ in 0..<20 {
      core.enqueue(1, for: KeyIndex(0), at: .zero)
      _ = core.cancel(KeyIndex(0))
    }
    #expect(core.slotCount <= 64)
  }

  @Test func `rxjs 2834: a change of a pending key requests no new wake-up`() {
    let time = WakeCounter()
    let queue = LastOutQueue(clock: time)
    for _ in 0..<1000 { queue.enqueue(forKey: "k") {} }
    #expect(time.wakes == 1)
  }

  @Test func `tokio 3270: a deadline that moves forward wakes the driver`() {
    let time = WakeCounter()
    let queue = LastOutQueue(clock: time)
    queue.enqueue(forKey: "k") {}
    queue.enqueue(forKey: "k", delay: .seconds(1)) {}
    queue.enqueue(forKey: "other", delay: .seconds(3)) {}
    #expect(time.wakes == 2)
  }

  @Test func `rxjs 6874: after a jump in time due tasks run once`() {
    let queue = clock.queue(policy: Policy(delay: .milliseconds(10), maxWait: .milliseconds(20)))
    queue.enqueue(forKey: "k") { [log] in log("run") }
    clock.advance(by: .seconds(1 << 30))
    #expect(log.lines == ["run"])
  }

  @Test func `tokio 8342: a moment before the latest one counts as the latest`() {
    var core = LastOutCore<Int>(policy: Policy(delay: .nanoseconds(10)))
    core.enqueue(1, for: KeyIndex(0), at: Moment(nanoseconds: 100))
    core.enqueue(2, for: KeyIndex(1), at: Moment(nanoseconds: 50))
    #expect(core.pending(KeyIndex(1))?.due == Moment(nanoseconds: 110))
    #expect(core.nextRun(at: Moment(nanoseconds: 109))?.value == nil)
  }

  @Test func `runed 139: a task may enqueue its own key, and the new value runs`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "k") { [log] in
      log("first")
      queue.enqueue(forKey: "k") { log("second") }
    }
    clock.advance(by: .seconds(4))
    #expect(log.lines == ["first", "second"])
  }

  @Test func `Bull 1034: a key that runs is a state of its own`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "k") { [log] in
      log(
        "\(queue.isRunning(forKey: "k")) \(queue.isPending(forKey: "k")) \(queue.cancel(forKey: "k"))"
      )
    }
    clock.advance(by: .seconds(2))
    #expect(log.lines == ["true false alreadyStarted"])
    #expect(queue.cancel(forKey: "k") == .nothing)
  }

  @Test func `bep debounce: a cancel that is too late reports it and the run completes`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "k") { [log] in
      queue.enqueue(forKey: "k") { log("never") }
      log("\(queue.cancel(forKey: "k"))")
      log("\(queue.cancel(forKey: "k"))")
    }
    clock.advance(by: .seconds(10))
    #expect(log.lines == ["cancelled", "alreadyStarted"])
  }

  @Test func `Go 17600: cancelling a delayed task late reports that it ran`() {
    let task = clock.delayedTask(after: .seconds(1)) {}
    clock.advance(by: .seconds(1))
    #expect(task.cancel() == .alreadyStarted)
  }

  @Test func `SpacemanBlocks: two tasks scheduled through one variable do not disturb each other`()
  {
    var task = clock.delayedTask(after: .seconds(1)) { [log] in log("one") }
    task = clock.delayedTask(after: .seconds(2)) { [log] in log("two") }
    clock.advance(by: .seconds(1))
    #expect(task.cancel() == .cancelled)
    clock.advance(by: .seconds(5))
    #expect(log.lines == ["one"])
  }

  @Test func `ProcedureKit 421: a task cancelled by one that is due with it does not start`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "a") { [log] in
      log("a")
      queue.enqueue(forKey: "b", delay: .zero) { log("b") }
      queue.cancel(forKey: "b")
    }
    clock.advance(by: .seconds(3))
    #expect(log.lines == ["a"])
  }

  @Test func `Netty 2541: counters are exact after cancels`() {
    let queue = clock.queue()
    for number in 0..<100 { queue.enqueue(forKey: "k\(number)") {} }
    for number in 0..<50 { queue.cancel(forKey: "k\(number)") }
    #expect(queue.pendingCount == 50)
    #expect(queue.cancelAll() == 50)
    #expect(queue.pendingCount == 0)
    #expect(clock.nextDeadline == nil)
  }

  @Test func `Netty 5647: releasing a queue drops and frees pending tasks`() {
    weak var captured: Captured?
    do {
      let queue = clock.queue()
      let object = Captured()
      captured = object
      queue.enqueue(forKey: "k", delay: .seconds(3600)) { object.use() }
      #expect(captured != nil)
    }
    #expect(captured == nil)
  }

  @Test func `p-debounce: a task that throws harms neither its key nor another`() {
    struct Broken: Error {}
    let queue = clock.queue { [log] key, error in log("\(key): \(error)") }
    queue.enqueue(forKey: "a") { throw Broken() }
    queue.enqueue(forKey: "b") { [log] in log("b ran") }
    clock.advance(by: .seconds(2))
    queue.enqueue(forKey: "a") { [log] in log("a ran") }
    clock.advance(by: .seconds(2))
    #expect(log.lines.sorted() == ["a ran", "a: Broken()", "b ran"])
  }
}

/// A stopped clock that counts how often a queue requests an earlier wake-up.
struct WakeCounter: EngineClock {
  typealias Duration = Swift.Duration
  typealias Instant = LastOutTestClock.Instant

  private let timekeeper = CountingTimekeeper()

  var wakes: Int { timekeeper.count.load(ordering: .relaxed) }
  var now: Instant { Instant(.zero) }
  var minimumResolution: Duration { .zero }

  func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
  func makeTimekeeper() -> any Timekeeper { timekeeper }
}

private final class CountingTimekeeper: Timekeeper {
  let count = Atomic(0)

  var now: Moment { .zero }

  func attach(_ engine: any ServedEngine) {}
  func wake(at deadline: Moment) { count.add(1, ordering: .relaxed) }
  func stop() {}
}

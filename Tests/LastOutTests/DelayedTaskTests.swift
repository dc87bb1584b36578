// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import LastOutTesting
import Testing

@Suite struct DelayedTaskTests {
  private let clock = LastOutTestClock()
  private let log = Log()

  @Test func `a task runs once, at its time, even if its handle is released`() {
    clock.delayedTask(after: .seconds(3)) { [log] in log("ran") }
    clock.advance(by: .milliseconds(2999))
    #expect(log.lines.isEmpty)
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["ran"])
    #expect(clock.nextDeadline == nil)
  }

  @Test func `cancel drops the task, reports it once, and frees its captures at once`() {
    weak var captured: Captured?
    let task: DelayedTask
    do {
      let object = Captured()
      captured = object
      task = clock.delayedTask(after: .seconds(3)) { object.use() }
    }
    #expect(task.cancel() == .cancelled)
    #expect(captured == nil)
    #expect(task.cancel() == .nothing)
    #expect(clock.nextDeadline == nil)
  }

  @Test func `captures are freed when the task has run, although the handle lives on`() {
    weak var captured: Captured?
    let task: DelayedTask
    do {
      let object = Captured()
      captured = object
      task = clock.delayedTask(after: .seconds(3)) { object.use() }
    }
    clock.advance(by: .seconds(3))
    #expect(captured == nil)
    #expect(task.cancel() == .alreadyStarted)
  }

  @Test func `runNow runs the task at once and only once`() {
    let task = clock.delayedTask(after: .seconds(3)) { [log] in log("ran") }
    #expect(task.runNow())
    #expect(!task.runNow())
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["ran"])
    #expect(task.cancel() == .alreadyStarted)
  }

  @Test func `a cancelled task cannot be run`() {
    let task = clock.delayedTask(after: .seconds(3)) { [log] in log("ran") }
    task.cancel()
    #expect(!task.runNow())
    #expect(log.lines.isEmpty)
  }

  @Test func `an old handle never affects a later task`() {
    let old = clock.delayedTask(after: .seconds(1)) { [log] in log("old") }
    clock.advance(by: .seconds(1))
    clock.delayedTask(after: .seconds(1)) { [log] in log("new") }
    #expect(old.cancel() == .alreadyStarted)
    #expect(!old.runNow())
    clock.advance(by: .seconds(1))
    #expect(log.lines == ["old", "new"])
  }

  @Test func `tasks run in the order of their times, not of their making`() {
    for second in [5, 1, 4, 2, 3] {
      clock.delayedTask(after: .seconds(second)) { [log, clock] in log("\(second) \(clock.now)") }
    }
    clock.advance(by: .seconds(5))
    #expect(log.lines == (1...5).map { "\($0) \(Duration.seconds($0))" })
  }

  @Test func `a task may schedule another one`() {
    clock.delayedTask(after: .seconds(1)) { [log, clock] in
      clock.delayedTask(after: .seconds(1)) { log("second at \(clock.now)") }
    }
    clock.advance(by: .seconds(2))
    #expect(log.lines == ["second at 2.0 seconds"])
  }

  @Test func `of two concurrent cancels one succeeds and the other finds nothing`() {
    for _ in 0..<5000 {
      let task = DelayedTask(after: .seconds(3600)) {}
      let outcomes = Locked<[CancelOutcome]>([])
      DispatchQueue.concurrentPerform(iterations: 2) { _ in
        let outcome = task.cancel()
        outcomes.withLock { $0.append(outcome) }
      }
      #expect(Set(outcomes.withLock { $0 }) == [.cancelled, .nothing])
    }
  }

  @Test func `a cancel from the end of a capture finds the task cancelled`() {
    final class Canceller: Sendable {
      let task = Locked<DelayedTask?>(nil)
      let log: Log
      init(_ log: Log) { self.log = log }
      deinit {
        if let task = task.withLock({ $0 }) { log("\(task.cancel())") }
      }
    }
    let task: DelayedTask
    do {
      let canceller = Canceller(log)
      task = clock.delayedTask(after: .seconds(1)) { withExtendedLifetime(canceller) {} }
      canceller.task.withLock { $0 = task }
    }
    task.cancel()
    #expect(log.lines == ["nothing"])
  }

  @Test func `a debounce function runs the newest task after the quiet period`() {
    let save = clock.debounce(delay: .milliseconds(500))
    for number in 1...5 {
      save { [log] in log("save \(number)") }
      clock.advance(by: .milliseconds(100))
    }
    clock.advance(by: .milliseconds(399))
    #expect(log.lines.isEmpty)
    clock.advance(by: .milliseconds(1))
    #expect(log.lines == ["save 5"])
  }

  @Test func `letting go of a debounce function does not lose its last task`() {
    clock.debounce(delay: .seconds(1))({ [log] in log("ran") })
    clock.debounce(delay: .seconds(1))({ [log] in log("ran too") })
    clock.advance(by: .seconds(1))
    #expect(log.lines.sorted() == ["ran", "ran too"])
  }

  @Test func `a debounced function can be cancelled, flushed and queried`() {
    let save = clock.debounce(delay: .seconds(1))
    #expect(!save.isPending)
    save { [log] in log("never") }
    #expect(save.isPending)
    #expect(save.cancel() == .cancelled)
    save { [log] in log("flushed") }
    #expect(save.flush() == .ran)
    #expect(save.flush() == .nothing)
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["flushed"])
  }

  @Test func `a debounced function supports any policy`() {
    let send = Debounce(policy: .live, clock: clock)
    for number in 1...3 { send { [log] in log("\(number)") } }
    #expect(log.lines == ["1"])
    clock.advance(by: .milliseconds(200))
    #expect(log.lines == ["1", "3"])
  }
}

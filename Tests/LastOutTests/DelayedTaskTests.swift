// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

@Suite struct DelayedTaskTests {
  private let clock = TestClock()
  private let log = Log()

  @Test func `a task runs once, at its time, also when nobody holds it`() {
    clock.delayedTask(after: .seconds(3)) { [log] in log("ran") }
    clock.advance(by: .milliseconds(2999))
    #expect(log.lines.isEmpty)
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["ran"])
    #expect(clock.nextDeadline == nil)
  }

  @Test func `cancel drops the task, says so once, and frees its captures at once`() {
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

  @Test func `an old handle never touches the task that came after it`() {
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
}

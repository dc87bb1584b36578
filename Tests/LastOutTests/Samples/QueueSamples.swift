// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import LastOutTesting
import Testing

/// The samples of the articles about queues, each followed by its expected result.
@Suite struct QueueSamples {
  private let log = Log()

  @Test func `the first sample sends one message`() {
    let lamp = Lamp(log: log)
    let queue = LastOutQueue(policy: Policy(delay: .milliseconds(300), maxWait: .seconds(2)))

    for brightness in 1...40 {
      queue.enqueue(forKey: "desk-lamp/brightness") {
        try lamp.send(brightness: brightness)
      }
    }
    queue.executePendingTasks()  // Before the program ends: nothing is lost.
    #expect(log.lines == ["40"])
  }

  @Test func `the policies of the sample have the stated members`() {
    let policy = Policy(delay: .milliseconds(300), maxWait: .seconds(2))
    let live = Policy(
      delay: .milliseconds(200),
      maxWait: .milliseconds(200),
      leading: true,
      minInterval: .milliseconds(200)
    )
    let first = Policy.leadingOnly(delay: .milliseconds(300))
    #expect(!policy.leading)
    #expect(live == .live)
    #expect(!first.trailing)
  }

  @Test func `a change carries its own delay`() {
    let clock = LastOutTestClock()
    let queue = clock.queue()
    queue.enqueue(forKey: "blind/position", delay: .seconds(5)) { log("blind moves") }
    #expect(clock.nextDeadline == .seconds(5))
  }

  @Test func `a cancel returns its outcome`() {
    let queue = LastOutTestClock().queue()
    switch queue.cancel(forKey: "desk-lamp/brightness") {
    case .cancelled: log("dropped, and what it captured is free")
    case .alreadyStarted: log("too late")
    case .nothing: log("nothing was pending")
    }
    #expect(log.lines == ["nothing was pending"])
  }

  @Test func `the test clock runs tasks at their exact times`() {
    let clock = LastOutTestClock()
    let queue = LastOutQueue(policy: Policy(delay: .milliseconds(300)), clock: clock)
    queue.enqueue(forKey: "lamp") { log("on") }
    clock.advance(by: .milliseconds(299))
    #expect(log.lines.isEmpty)
    clock.advance(by: .milliseconds(1))
    #expect(log.lines == ["on"])
  }

  @Test func `the test clock makes delayed tasks`() {
    let clock = LastOutTestClock()
    let task = DelayedTask(after: .seconds(1), clock: clock) { log("late") }
    clock.advance(by: .seconds(1))
    #expect(task.cancel() == .alreadyStarted)
  }

  @Test func `the player shows the effect of a policy`() {
    let player = TimelinePlayer<Int>(
      policy: Policy(delay: .milliseconds(100), maxWait: .milliseconds(200))
    )
    let runs = player.play([
      .set("lamp", 10, at: .milliseconds(0)),
      .set("lamp", 20, at: .milliseconds(80)),
      .set("lamp", 30, at: .milliseconds(160)),
    ])
    #expect(runs.map(\.value) == [30])
    #expect(runs.map(\.at) == [.milliseconds(200)])
    #expect(runs.map(\.collapsed) == [2])
  }
}

/// The device of the first sample.
private struct Lamp {
  let log: Log

  func send(brightness: Int) throws { log("\(brightness)") }
}

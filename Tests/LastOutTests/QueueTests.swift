// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

@Suite struct QueueTests {
  private let clock = LastOutTestClock()
  private let log = Log()

  @Test func `only the last task of a burst runs, two seconds after its change`() {
    let queue = clock.queue()
    for number in 1...10 {
      queue.enqueue(forKey: "lamp") { [log] in log("set \(number)") }
      clock.advance(by: .milliseconds(100))
    }
    clock.advance(by: .milliseconds(1899))
    #expect(log.lines.isEmpty)
    clock.advance(by: .milliseconds(1))
    #expect(log.lines == ["set 10"])
  }

  @Test func `onStart is called right before the task`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "k", onStart: { [log] in log("start") }, task: { [log] in log("task") })
    clock.advance(by: .seconds(2))
    #expect(log.lines == ["start", "task"])
  }

  @Test func `keys do not disturb each other, and each may have its policy`() {
    let queue = clock.queue()
    queue.setPolicy(Policy(delay: .milliseconds(300)), forKey: "fast")
    for key in ["fast", "slow"] {
      queue.enqueue(forKey: key) { [log, clock] in log("\(key) \(clock.now)") }
    }
    clock.advance(by: .seconds(9))
    #expect(log.lines == ["fast 0.3 seconds", "slow 2.0 seconds"])
  }

  @Test func `a change may carry its own delay`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "k", delay: .seconds(7)) { [log] in log("ran") }
    clock.advance(by: .milliseconds(6999))
    #expect(log.lines.isEmpty)
    clock.advance(by: .milliseconds(1))
    #expect(log.lines == ["ran"])
  }

  @Test func `a leading task runs at once, and the last one of its burst follows`() {
    let queue = clock.queue(policy: .live)
    for number in 1...3 { queue.enqueue(forKey: "k") { [log] in log("\(number)") } }
    #expect(log.lines == ["1"])
    clock.advance(by: .milliseconds(200))
    #expect(log.lines == ["1", "3"])
  }

  @Test func `flush runs the task on the calling thread and returns the outcome`() {
    let queue = clock.queue()
    #expect(queue.flush(forKey: "k") == .nothing)
    queue.enqueue(forKey: "k") { [log] in
      queue.enqueue(forKey: "k") { log("second") }
      log("\(queue.flush(forKey: "k"))")
    }
    #expect(queue.flush(forKey: "k") == .ran)
    #expect(log.lines == ["markedDue", "second"])
    #expect(queue.flush(forKey: "k") == .nothing)
  }

  @Test func `executePendingTasks runs each pending key once, whatever its tasks enqueue`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "k") { [log] in
      log("first")
      queue.enqueue(forKey: "k") { log("later") }
      queue.enqueue(forKey: "new") { log("new") }
    }
    queue.executePendingTasks()
    #expect(log.lines == ["first"])
    #expect(queue.pendingKeys.sorted() == ["k", "new"])
  }

  @Test func `a task may cancel a key that is flushed with it`() {
    let queue = clock.queue()
    for (key, other) in [("a", "b"), ("b", "a")] {
      queue.enqueue(forKey: key) { [log] in
        log("ran")
        queue.cancel(forKey: other)
      }
    }
    queue.executePendingTasks()
    #expect(log.lines == ["ran"])
  }

  @Test func `the queries return pending and running keys`() {
    let queue = clock.queue()
    queue.enqueue(forKey: "a") {}
    queue.enqueue(forKey: "b") {}
    queue.cancel(forKey: "b")
    #expect(queue.pendingCount == 1)
    #expect(queue.pendingKeys == ["a"])
    #expect(queue.isPending(forKey: "a"))
    #expect(!queue.isPending(forKey: "b"))
    #expect(!queue.isPending(forKey: "never seen"))
    #expect(!queue.isRunning(forKey: "a"))
    #expect(queue.cancel(forKey: "never seen") == .nothing)
  }

  @Test func `a queue that is idle waits for nothing`() {
    let queue = clock.queue()
    for number in 0..<1000 { queue.enqueue(forKey: "key \(number)") {} }
    clock.advance(by: .seconds(2))
    #expect(clock.nextDeadline == nil)
    #expect(queue.pendingCount == 0)
  }

  @Test func `two queues of one clock run in the order of time`() {
    let one = clock.queue(policy: Policy(delay: .seconds(1)))
    let two = clock.queue(policy: Policy(delay: .seconds(2)))
    two.enqueue(forKey: "k") { [log] in log("two") }
    one.enqueue(forKey: "k") { [log] in log("one") }
    clock.advance(to: .seconds(3))
    #expect(log.lines == ["one", "two"])
  }
}

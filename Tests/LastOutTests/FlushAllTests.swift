// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import LastOutTesting
import Testing

/// The end of a program: `flushAll`, `executePendingTasks` and `drain`.
@Suite struct FlushAllTests {
  private static var patience: DispatchTime { .now() + .seconds(60) }
  private let log = Log()

  /// A queue with a run of "lamp" in flight, which `release` ends.
  private func queueWithRun(release: DispatchSemaphore) -> LastOutQueue {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    let started = DispatchSemaphore(value: 0)
    queue.enqueue(forKey: "lamp", delay: .zero) { [log] in
      started.signal()
      release.wait()
      log("first")
    }
    #expect(started.wait(timeout: Self.patience) == .success)
    return queue
  }

  private func after(_ milliseconds: Int, _ body: @escaping @Sendable () -> Void) {
    DispatchQueue.global().asyncAfter(deadline: .now() + .milliseconds(milliseconds), execute: body)
  }

  @Test func `it waits for the runs in flight and for the values behind them`() {
    let release = DispatchSemaphore(value: 0)
    let queue = queueWithRun(release: release)
    queue.enqueue(forKey: "lamp") { [log] in log("last") }
    after(20) { release.signal() }
    #expect(queue.executePendingTasks().isEmpty)
    #expect(log.lines == ["first", "last"])
  }

  @Test func `the keys that exceed the timeout are returned, and their tasks continue`() {
    let release = DispatchSemaphore(value: 0)
    let queue = queueWithRun(release: release)
    queue.enqueue(forKey: "other") { [log] in log("other") }
    // A busy machine may not run the other task in that time.
    let end = Self.patience
    var late = queue.flushAll(timeout: .milliseconds(20))
    while late != ["lamp"], DispatchTime.now() < end {
      #expect(late.contains("lamp"))
      late = queue.flushAll(timeout: .milliseconds(20))
    }
    #expect(late == ["lamp"])
    #expect(log.lines == ["other"])
    release.signal()
    queue.flushAll()
    #expect(log.lines == ["other", "first"])
  }

  @Test func `after its timeout it starts nothing on the caller`() {
    let queue = LastOutQueue()
    let done = DispatchGroup()
    for number in 0..<5 {
      done.enter()
      queue.enqueue(forKey: "\(number)") { done.leave() }
    }
    #expect(queue.flushAll(timeout: .zero).sorted() == ["0", "1", "2", "3", "4"])
    #expect(done.wait(timeout: Self.patience) == .success)
  }

  @Test func `inside a task it runs pending tasks and does not wait`() {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    let done = DispatchSemaphore(value: 0)
    queue.enqueue(forKey: "other") { [log] in log("other") }
    queue.enqueue(forKey: "lamp", delay: .zero) { [log] in
      queue.enqueue(forKey: "lamp") { log("second") }
      log("\(queue.flushAll())")
      done.signal()
    }
    #expect(done.wait(timeout: Self.patience) == .success)
    queue.flushAll()
    #expect(log.lines == ["other", "[]", "second"])
  }

  @Test func `inside an asynchronous task it waits for nothing either`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    let run = queue.enqueue(forKey: "lamp", delay: .zero) { [log] in
      await Task.yield()
      queue.enqueue(forKey: "lamp") { log("second") }
      await queue.drain()
      queue.flushAll()
      log("first")
    }
    _ = await run.outcome
    await queue.drain()
    #expect(log.lines == ["first", "second"])
  }

  @Test func `a task that outlives a run is no longer inside it`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    let (ended, end) = AsyncStream.makeStream(of: Void.self)
    let (drained, drain) = AsyncStream.makeStream(of: Void.self)
    let first = queue.enqueue(forKey: "first", delay: .zero) { [log] in
      await Task.yield()
      Task {
        for await _ in ended {}
        await queue.drain()
        log("drained")
        drain.finish()
      }
    }
    _ = await first.outcome
    await queue.drain()
    queue.enqueue(forKey: "second") { [log] in log("second") }
    end.finish()
    for await _ in drained {}
    #expect(log.lines == ["second", "drained"])
  }

  @Test func `tasks that are enqueued during the pass stay pending`() {
    let clock = LastOutTestClock()
    let queue = clock.queue()
    for (key, other) in [("a", "b"), ("b", "a")] {
      queue.enqueue(forKey: key) { [log] in
        log("old \(key)")
        queue.enqueue(forKey: other) { log("new \(other)") }
      }
    }
    queue.flushAll()
    #expect(log.lines.sorted() == ["old a", "old b"])
    #expect(queue.pendingKeys.sorted() == ["a", "b"])
    clock.advance(by: .seconds(2))
    #expect(log.lines.count == 4)
  }

  @Test func `a flush in the pass runs a task that the pass has not started`() {
    let queue = LastOutTestClock().queue()
    for (key, other) in [("a", "b"), ("b", "a")] {
      queue.enqueue(forKey: key) { [log] in
        #expect(!queue.isPending(forKey: key) && queue.isRunning(forKey: key))
        if queue.isPending(forKey: other) {
          #expect(!queue.isRunning(forKey: other))
          #expect(queue.pendingCount == 1 && queue.pendingKeys == [other])
          #expect(queue.flush(forKey: other) == .ran)
        }
        log(key)
      }
    }
    queue.flushAll()
    #expect(log.lines.sorted() == ["a", "b"])
    #expect(queue.pendingCount == 0)
  }

  @Test func `cancelAll in the pass drops tasks that have not started`() {
    let queue = LastOutTestClock().queue()
    for key in ["a", "b", "c"] {
      queue.enqueue(forKey: key) { [log] in log("\(queue.cancelAll())") }
    }
    queue.flushAll()
    #expect(log.lines == ["2"])
  }

  @Test func `drain waits without blocking, also for asynchronous tasks`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    for number in 0..<10 {
      queue.enqueue(forKey: "sync \(number)") { [log] in log("sync") }
      queue.enqueue(forKey: "async \(number)") { [log] in
        try await Task.sleep(for: .milliseconds(5))
        log("async")
      }
    }
    await queue.drain()
    #expect(log.lines.count == 20)
    #expect(queue.pendingCount == 0)
  }

  @Test func `drain ends when its task is cancelled`() async {
    let release = DispatchSemaphore(value: 0)
    let queue = queueWithRun(release: release)
    let draining = Task { await queue.drain() }
    draining.cancel()
    await draining.value
    #expect(queue.isRunning(forKey: "lamp"))
    release.signal()
    await queue.drain()
    #expect(log.lines == ["first"])
  }

  @Test func `a value that is cancelled while drain waits for it is not waited for`() async {
    let release = DispatchSemaphore(value: 0)
    let queue = queueWithRun(release: release)
    queue.enqueue(forKey: "lamp") { [log] in log("never") }
    let draining = Task { await queue.drain() }
    while !queue.isPending(forKey: "lamp") { await Task.yield() }
    queue.cancel(forKey: "lamp")
    release.signal()
    await draining.value
    await queue.drain()
    #expect(log.lines == ["first"])
  }
}

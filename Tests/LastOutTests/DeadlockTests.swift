// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import Testing

/// Waits that could not end: each ends, or is refused with a sentence.
@Suite struct DeadlockTests {
  private static var patience: DispatchTime { .now() + .seconds(600) }
  private static let longDelay = Policy(delay: .seconds(3600))
  private let log = Log()

  private static func text(_ result: ExitTest.Result?) -> String {
    String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
  }

  @Test func `on the main thread a flush does not wait for a task of the main actor`() async {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) { @MainActor in
      let queue = LastOutQueue(policy: Self.longDelay)
      let log = Log()
      let run = queue.enqueue(forKey: "label", delay: .zero) { @MainActor in
        try await Task.sleep(for: .milliseconds(1))
        log("sent")
      }
      queue.enqueue(forKey: "other") {
        try await Task.sleep(for: .milliseconds(1))
        log("other")
      }
      while !queue.isRunning(forKey: "label") {}
      precondition(queue.executePendingTasks() == ["label"])
      precondition(log.lines == ["other"])
      precondition(queue.flush(forKey: "label") == .nothing)
      _ = await run.outcome
      precondition(log.lines == ["other", "sent"])
    }
    #expect(Self.text(result).contains("does not wait for \"label\": use drain()"))
  }

  @Test @MainActor
  func `on the main thread a flush does not wait for tasks on the main actor's executor`() async {
    let queue = LastOutQueue(policy: Self.longDelay, executor: .mainActor)
    queue.enqueue(forKey: "a") { [log] in
      await Task.yield()
      log("a")
    }
    #expect(queue.flushAll() == ["a"])
    #expect(queue.flushAll(timeout: .seconds(3600)) == ["a"])
    await queue.drain()
    queue.enqueue(forKey: "b") { [log] in
      await Task.yield()
      log("b")
    }
    #expect(queue.flush(forKey: "b") == .markedDue)
    let task = DelayedTask(after: .seconds(3600)) { @MainActor [log] in
      await Task.yield()
      log("c")
    }
    #expect(task.runNow())
    #expect(!task.runNow())
    await queue.drain()
    _ = await task.outcome
    #expect(log.lines.sorted() == ["a", "b", "c"])
  }

  @Test func `tasks that flush on all threads of Swift's pool do not wait for each other`() async {
    await #expect(processExitsWith: .success) {
      let done = DispatchGroup()
      for number in 0..<100 {
        done.enter()
        Task.detached {
          Self.flush(number)
          done.leave()
        }
      }
      precondition(done.wait(timeout: Self.patience) == .success)
    }
  }

  private static func flush(_ number: Int) {
    let queue = LastOutQueue(policy: longDelay)
    let log = Log()
    queue.enqueue(forKey: "a") {
      try await Task.sleep(for: .milliseconds(number % 10))
      log("a")
    }
    queue.executePendingTasks()
    precondition(log.lines == ["a"])
  }

  @Test func `a task that flushes waits for the tasks that it starts, and for no other`() {
    let queue = LastOutQueue(policy: Self.longDelay, executor: .threads(limit: 1))
    let done = DispatchSemaphore(value: 0)
    queue.enqueue(forKey: "a", delay: .zero) { [log] in
      queue.enqueue(forKey: "a") { log("second") }
      queue.enqueue(forKey: "b") {
        try await Task.sleep(for: .milliseconds(5))
        log("b")
      }
      log("\(queue.flushAll()) \(queue.flush(forKey: "a"))")
      queue.enqueue(forKey: "c") { log("c") }
      log("\(queue.flushAll(timeout: .seconds(3600)))")
      done.signal()
    }
    #expect(done.wait(timeout: Self.patience) == .success)
    queue.flushAll()
    #expect(log.lines == ["b", "[] markedDue", "c", "[]", "second"])
  }

  @Test func `an asynchronous task that flushes does not keep the thread of what it waits for`() {
    let queue = LastOutQueue(policy: Self.longDelay, executor: .threads(limit: 1))
    let done = DispatchSemaphore(value: 0)
    queue.enqueue(forKey: "a", delay: .zero) { [log] in
      await Task.yield()
      queue.enqueue(forKey: "b") {
        try await Task.sleep(for: .milliseconds(5))
        log("b")
      }
      log("\(queue.flushAll())")
      done.signal()
    }
    #expect(done.wait(timeout: Self.patience) == .success)
    #expect(log.lines == ["b", "[]"])
  }

  @Test func `two queues whose tasks flush each other do not wait for each other`() async {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      let queues = [LastOutQueue(policy: Self.longDelay), LastOutQueue(policy: Self.longDelay)]
      let started = [DispatchSemaphore(value: 0), DispatchSemaphore(value: 0)]
      let late = Locked<[String]>([])
      for number in [0, 1] {
        queues[number].enqueue(forKey: "task \(number)", delay: .zero) {
          started[number].signal()
          precondition(started[1 - number].wait(timeout: Self.patience) == .success)
          let names = queues[1 - number].executePendingTasks()
          late.withLock { $0 += names }
        }
      }
      for queue in queues {
        while queue.isPending(forKey: "task 0") || queue.isPending(forKey: "task 1") {}
        precondition(queue.executePendingTasks() == [])
      }
      precondition(late.withLock { $0.count } == 1)
    }
    let text = Self.text(result)
    #expect(text.contains("a flush would wait for itself, and does not wait for \"task"))
  }

  @Test func `asynchronous tasks that drain each other's queues do not wait for each other`() async
  {
    let queues = [LastOutQueue(policy: Self.longDelay), LastOutQueue(policy: Self.longDelay)]
    let started = [Gate(), Gate()]
    for number in [0, 1] {
      queues[number].enqueue(forKey: "task", delay: .zero) { [log] in
        started[number].open()
        await started[1 - number].pass()
        await queues[1 - number].drain()
        log("\(number)")
      }
    }
    for gate in started { await gate.pass() }
    for queue in queues { await queue.drain() }
    #expect(log.lines.sorted() == ["0", "1"])
  }

  @Test @MainActor
  func `a task that the main thread waits for cannot wait for the main thread`() async {
    let main = LastOutQueue(policy: Self.longDelay, executor: .mainActor)
    let queue = LastOutQueue(policy: Self.longDelay)
    let started = DispatchSemaphore(value: 0)
    main.enqueue(forKey: "label") { [log] in log("label") }
    queue.enqueue(forKey: "a", delay: .zero) { [log] in
      started.signal()
      // Nothing shows when the main thread waits.
      _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(100))
      log("\(main.flushAll())")
    }
    started.wait()
    queue.flushAll()
    await main.drain()
    await queue.drain()
    // The flush that began last does not wait.
    #expect([["[\"label\"]", "label"], ["label", "[]"]].contains(log.lines))
  }

  @Test func `a flush elsewhere leaves tasks of the main actor on the main thread`() async {
    let queue = LastOutQueue(policy: Self.longDelay, executor: .mainActor)
    queue.enqueue(forKey: "a") { [log] in MainActor.assumeIsolated { log("a") } }
    queue.enqueue(forKey: "b") { [log] in MainActor.assumeIsolated { log("b") } }
    await Task.detached {
      #expect(queue.flush(forKey: "a") == .ran)
      #expect(queue.flushAll() == [])
    }.value
    #expect(log.lines == ["a", "b"])
  }

  @Test func `a task on the queue's own Dispatch queue flushes it there`() {
    let serial = DispatchQueue(label: "serial")
    let queue = LastOutQueue(policy: Self.longDelay, executor: .queue(serial))
    for key in ["a", "b"] { queue.enqueue(forKey: key) { [log] in log(key) } }
    queue.enqueue(forKey: "c") { [log] in
      await Task.yield()
      log("c")
    }
    serial.sync {
      #expect(queue.flush(forKey: "a") == .ran)
      #expect(queue.flushAll() == ["c"])
    }
    queue.flushAll()
    #expect(log.lines == ["a", "b", "c"])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import LastOutTesting
import Synchronization
import Testing

/// Asynchronous tasks of a queue of closures, and asynchronous handlers.
@Suite struct AsyncTaskTests {
  private let log = Log()
  private struct Broken: Error {}

  @Test func `the run ends with the await, so runs of one key never overlap`() async {
    let queue = LastOutQueue(policy: Policy(delay: .microseconds(200)))
    let active = Atomic(0)
    let overlaps = Atomic(0)
    for _ in 0..<50 {
      queue.enqueue(forKey: "lamp") {
        if active.add(1, ordering: .relaxed).newValue > 1 { overlaps.add(1, ordering: .relaxed) }
        try await Task.sleep(for: .milliseconds(2))
        active.subtract(1, ordering: .relaxed)
      }
      try? await Task.sleep(for: .milliseconds(1))
    }
    await queue.drain()
    #expect(overlaps.load(ordering: .relaxed) == 0)
    #expect(active.load(ordering: .relaxed) == 0)
  }

  @Test func `the handle returns the task's outcome`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600))) { [log] key, error in
      log("\(key): \(error)")
    }
    let replaced = queue.enqueue(forKey: "a") { await Task.yield() }
    let failing = queue.enqueue(forKey: "a") {
      await Task.yield()
      throw Broken()
    }
    let complete = queue.enqueue(forKey: "b") { await Task.yield() }
    let cancelled = queue.enqueue(forKey: "c") { await Task.yield() }
    queue.cancel(forKey: "c")
    await queue.drain()
    guard case .dropped = await replaced.outcome, case .cancelled = await cancelled.outcome,
      case .failed(let error) = await failing.outcome, case .completed = await complete.outcome
    else {
      Issue.record("a handle tells something else")
      return
    }
    #expect(error is Broken)
    #expect(log.lines == ["a: Broken()"])
  }

  @Test func `a handle cancels its own task and no other`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    let old = queue.enqueue(forKey: "a") { await Task.yield() }
    queue.enqueue(forKey: "a") { [log] in
      await Task.yield()
      log("new")
    }
    old.cancel()
    let pending = queue.enqueue(forKey: "b") { [log] in
      await Task.yield()
      log("never")
    }
    pending.cancel()
    await queue.drain()
    #expect(log.lines == ["new"])
    guard case .cancelled = await pending.outcome else {
      Issue.record("a cancelled task was not cancelled")
      return
    }
  }

  @Test func `cancelAll cancels the tasks that run`() async {
    let queue = LastOutQueue(policy: Policy(delay: .zero)) { [log] _, error in log("\(error)") }
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let run = queue.enqueue(forKey: "lamp") {
      start.finish()
      try await Task.sleep(for: .seconds(3600))
    }
    for await _ in started {}
    queue.cancelAll()
    _ = await run.outcome
    #expect(log.lines == ["CancellationError()"])
  }

  @Test func `a task that is isolated to the main actor runs there`() async {
    let queue = LastOutQueue(policy: Policy(delay: .zero))
    let run = queue.enqueue(forKey: "label") { @MainActor [log] in
      MainActor.preconditionIsolated()
      log("on the main actor")
    }
    _ = await run.outcome
    #expect(log.lines == ["on the main actor"])
  }

  @Test func `plain tasks run on the executor of the queue`() async {
    let main = LastOutQueue(policy: Policy(delay: .zero), executor: .mainActor)
    main.enqueue(forKey: "k") { [log] in
      MainActor.assumeIsolated { log("main") }
    }
    await main.drain()
    let serial = DispatchQueue(label: "serial")
    let dispatch = LastOutQueue(policy: Policy(delay: .zero), executor: .queue(serial))
    for number in 0..<10 {
      dispatch.enqueue(forKey: "\(number)") { [log] in
        dispatchPrecondition(condition: .onQueue(serial))
        log("serial")
      }
    }
    await dispatch.drain()
    let executor = LastOutQueue(
      policy: Policy(delay: .zero),
      executor: .executor(globalConcurrentExecutor)
    )
    executor.enqueue(forKey: "k") { [log] in log("executor") }
    await executor.drain()
    #expect(Set(log.lines) == ["main", "serial", "executor"])
    #expect(log.lines.count == 12)
  }

  @Test func `the log receives the events of a task`() async {
    let queue = LastOutQueue(
      onError: { _, _ in },
      log: { [log] event in
        switch event {
        case .enqueued(let key): log("enqueued \(key)")
        case .replaced(let key): log("replaced \(key)")
        case .cancelled(let key): log("cancelled \(key)")
        case .started(let key): log("started \(key)")
        case .ended(let key, let error): log("ended \(key) \(error.map { "\($0)" } ?? "well")")
        }
      }
    )
    queue.enqueue(forKey: "plain") { throw Broken() }
    queue.flush(forKey: "plain")
    let run = queue.enqueue(forKey: "async") { await Task.yield() }
    queue.flush(forKey: "async")
    _ = await run.outcome
    #expect(
      log.lines == [
        "enqueued plain", "started plain", "ended plain Broken()",
        "enqueued async", "started async", "ended async well",
      ]
    )
  }

  @Test func `any clock can drive a queue`() async {
    let queue = LastOutQueue(policy: Policy(delay: .milliseconds(20)), clock: ContinuousClock())
    let start = ContinuousClock.now
    for number in 1...5 { queue.enqueue(forKey: "lamp") { [log] in log("\(number)") } }
    queue.enqueue(forKey: "early", delay: .milliseconds(2)) { [log] in log("early") }
    while log.lines.count < 2 { try? await Task.sleep(for: .milliseconds(1)) }
    #expect(log.lines.sorted() == ["5", "early"])
    #expect(ContinuousClock.now - start >= .milliseconds(20))
  }

  @Test func `a low quality of service is used if the system allows it`() {
    for priority in [TaskPriority.high, .medium, .low, .background] {
      let queue = LastOutQueue(executor: .threads(priority: priority))
      queue.enqueue(forKey: "k", delay: .zero) { [log] in log("ran") }
      while queue.isPending(forKey: "k") {}
      queue.flushAll()
    }
    #expect(log.lines.count == 4)
  }
}

/// Where asynchronous tasks run, and with which values.
@Suite struct TaskContextTests {
  @TaskLocal private static var trace = "none"
  private let log = Log()

  @Test func `a task has the task-local values of its enqueue`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    for trace in ["a", "b"] {
      Self.$trace.withValue(trace) {
        queue.enqueue(forKey: trace) { [log] in
          await Task.yield()
          log(Self.trace)
        }
      }
    }
    await queue.drain()
    #expect(log.lines.sorted() == ["a", "b"])
  }

  @Test func `a replaced task with task-local values is freed at once`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    weak var captured: Captured?
    do {
      let object = Captured()
      captured = object
      queue.enqueue(forKey: "a") { object.use() }
      queue.enqueue(forKey: "b") {
        await Task.yield()
        object.use()
      }
    }
    #expect(captured != nil)
    queue.cancel(forKey: "a")
    queue.enqueue(forKey: "b") { await Task.yield() }
    #expect(captured == nil)
    #expect(unsafe withUnsafeCurrentTask { task in unsafe task != nil })
    await queue.drain()
  }

  @Test func `a task has the priority of the executor`() async {
    let queue = LastOutQueue(executor: .threads(priority: .background))
    queue.enqueue(forKey: "a") { [log] in
      await Task.yield()
      log("\(Task.currentPriority == .background)")
    }
    let values = LastOutValueQueue<Int, Int>(executor: .threads(priority: .background)) {
      [log] _, _, _ in
      await Task.yield()
      log("\(Task.currentPriority == .background)")
    }
    values.enqueue(1, forKey: 1)
    await OwnThread.run {
      _ = queue.enqueue(forKey: "b") { [log] in
        await Task.yield()
        log("\(Task.currentPriority == .background)")
      }
    }
    await queue.drain()
    await values.drain()
    #expect(log.lines == ["true", "true", "true"])
  }

  @Test func `a task runs on the executor of its queue, and an actor's method on the actor`() async
  {
    let executor = CountingExecutor()
    let queue = LastOutQueue(
      policy: Policy(delay: .seconds(3600)),
      executor: .executor(executor)
    )
    queue.enqueue(forKey: "a") { [log] in
      await Task.yield()
      log("a")
    }
    let lamp = Lamp()
    await lamp.dim(queue)
    await queue.drain()
    #expect(log.lines == ["a"])
    #expect(await lamp.brightness == 40)
    #expect(executor.count > 1)
  }
}

private actor Lamp {
  private(set) var brightness = 0

  /// Enqueues a change of this actor's state.
  func dim(_ queue: LastOutQueue) {
    queue.enqueue(forKey: "lamp") { await self.set(40) }
  }

  private func set(_ brightness: Int) { self.brightness = brightness }
}

private final class CountingExecutor: TaskExecutor {
  private let jobs = Locked(0)
  private let queue = DispatchQueue(label: "counting")

  var count: Int { jobs.withLock { $0 } }

  func enqueue(_ job: consuming ExecutorJob) {
    jobs.withLock { $0 += 1 }
    let job = UnownedJob(job)
    queue.async { unsafe job.runSynchronously(on: self.asUnownedTaskExecutor()) }
  }
}

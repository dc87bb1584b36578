// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// Cancelling a task by its run, its key, or with all others.
@Suite struct CancelTests {
  private let clock = LastOutTestClock()
  private let log = Log()

  private func queue() -> LastOutQueue {
    LastOutQueue(
      clock: clock,
      onError: { [log] key, error in log("error \(key) \(error)") },
      log: { [log] event in
        switch event {
        case .enqueued, .ended: break
        case .replaced(let key): log("replaced \(key)")
        case .cancelled(let key): log("cancelled \(key)")
        case .started(let key): log("started \(key)")
        }
      }
    )
  }

  @Test func `a run that is cancelled leaves the queue`() async {
    let queue = queue()
    weak var captured: Captured?
    let run: LastOutRun
    do {
      let object = Captured()
      captured = object
      run = queue.enqueue(forKey: "a", onStart: { [log] in log("onStart") }) { object.use() }
    }
    #expect(run.cancel() == .cancelled)
    #expect(captured == nil)
    #expect(!queue.isPending(forKey: "a"))
    #expect(clock.nextDeadline == nil)
    clock.advance(by: .seconds(10))
    guard case .cancelled = await run.outcome else {
      Issue.record("the outcome is another")
      return
    }
    #expect(run.cancel() == .nothing)
    #expect(log.lines == ["cancelled a"])
  }

  @Test func `a run cancels its own task and no newer one`() async {
    let queue = queue()
    let old = queue.enqueue(forKey: "a") {}
    let new = queue.enqueue(forKey: "a") {}
    #expect(old.cancel() == .nothing)
    clock.advance(by: .seconds(2))
    guard case .dropped = await old.outcome, case .completed = await new.outcome else {
      Issue.record("an outcome is another")
      return
    }
    #expect(new.cancel() == .alreadyStarted)
    #expect(log.lines == ["replaced a", "started a"])
  }

  @Test func `a plain task has an outcome`() async {
    struct Broken: Error {}
    let queue = queue()
    let failing = queue.enqueue(forKey: "a") { throw Broken() }
    let notStarted = queue.enqueue(forKey: "b", onStart: { throw Broken() }) { [log] in log("b") }
    let awaiting = Task { await failing.outcome }
    clock.advance(by: .seconds(2))
    for outcome in [await awaiting.value, await notStarted.outcome] {
      guard case .failed(let error) = outcome, error is Broken else {
        Issue.record("the outcome is another")
        return
      }
    }
    #expect(!log.lines.contains("b"))
  }

  @Test func `a queue that is released drops its tasks, and says so to their runs`() async {
    var queue: LastOutQueue? = queue()
    let run = queue?.enqueue(forKey: "a") {}
    queue = nil
    clock.advance(by: .seconds(2))
    guard case .dropped? = await run?.outcome else {
      Issue.record("the outcome is another")
      return
    }
    #expect(log.lines.isEmpty)
  }

  @Test(arguments: ["run", "key", "all"])
  func `a running asynchronous task is cancelled, whatever cancels it`(way: String) async {
    let queue = queue()
    let run = queue.enqueue(forKey: "a", delay: .zero) { [clock] in
      try await clock.sleep(for: .seconds(3600))
    }
    clock.advance(by: .zero)
    await clock.sleepers()
    queue.enqueue(forKey: "a") {}
    switch way {
    case "run": #expect(run.cancel() == .alreadyStarted)
    case "key": #expect(queue.cancel(forKey: "a") == .cancelled)
    default: #expect(queue.cancelAll() == 1)
    }
    guard case .cancelled = await run.outcome else {
      Issue.record("the outcome is another")
      return
    }
    #expect(queue.isPending(forKey: "a") == (way == "run"))
    let last = way == "run" ? [] : ["cancelled a"]
    #expect(log.lines.filter { !$0.hasPrefix("error") } == ["started a"] + last)
    #expect(log.lines.contains("error a CancellationError()"))
  }

  @Test func `a cancelled handler is cancelled by its key`() async {
    let queue = LastOutValueQueue<Int, Int>(clock: clock) { [clock, log] key, _, _ in
      do { try await clock.sleep(for: .seconds(3600)) } catch { log("\(error)") }
    }
    queue.enqueue(1, forKey: 1, delay: .zero)
    clock.advance(by: .zero)
    await clock.sleepers()
    #expect(queue.cancel(forKey: 1) == .alreadyStarted)
    await queue.drain()
    #expect(log.lines == ["CancellationError()"])
  }

  @Test func `cancelling is not an error on standard error`() async {
    let result = await #expect(
      processExitsWith: .success,
      observing: [\.standardErrorContent]
    ) {
      let queue = LastOutQueue(policy: Policy(delay: .zero))
      let started = Gate()
      let run = queue.enqueue(forKey: "a") {
        started.open()
        try await Task.sleep(for: .seconds(3600))
      }
      await started.pass()
      queue.cancel(forKey: "a")
      _ = await run.outcome
    }
    let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
    #expect(!text.contains("LastOut:"))
  }
}

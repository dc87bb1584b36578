// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import LastOutTesting
import Testing

/// What both kinds of queue and the single tasks have in common.
@Suite struct SharedFaceTests {
  private struct Broken: Error {}
  private struct Key: Hashable { let number: Int }

  private let clock = LastOutTestClock()
  private let log = Log()

  private func text(_ event: LastOutEvent<Key>) -> String {
    switch event {
    case .enqueued(let key): "enqueued \(key.number)"
    case .replaced(let key): "replaced \(key.number)"
    case .cancelled(let key): "cancelled \(key.number)"
    case .started(let key): "started \(key.number)"
    case .ended(let key, let error): "ended \(key.number) \(error.map { "\($0)" } ?? "well")"
    }
  }

  /// The same calls for a queue of any values.
  private func play<Value>(
    _ queue: LastOutValueQueue<Key, Value>,
    enqueue: (Int) -> Void
  ) {
    queue.setPolicy(Policy(delay: .seconds(1)), forKey: Key(number: 1))
    enqueue(1)
    enqueue(1)
    clock.advance(by: .seconds(1))
    queue.removePolicy(forKey: Key(number: 1))
    enqueue(1)
    clock.advance(by: .seconds(1))
    log("\(queue.isPending(forKey: Key(number: 1))) \(queue.pendingKeys.count)")
    queue.cancel(forKey: Key(number: 1))
    enqueue(2)
    queue.executePendingTasks()
    enqueue(3)
    queue.cancelAll()
  }

  @Test func `both queues have the same methods, keys, policies and events`() {
    let tasks = LastOutTaskQueue<Key>(clock: clock, log: { [log] event in log(text(event)) })
    play(tasks) { number in tasks.enqueue(forKey: Key(number: number)) {} }
    let ofTasks = log.lines
    let values = LastOutValueQueue<Key, Int>(
      clock: clock,
      log: { [log] event in log(text(event)) },
      handler: { _, _, _ in }
    )
    play(values) { number in values.enqueue(1, forKey: Key(number: number)) }
    #expect(ofTasks == Array(log.lines.dropFirst(ofTasks.count)))
    #expect(
      ofTasks == [
        "enqueued 1", "enqueued 1", "replaced 1", "started 1", "ended 1 well",
        "enqueued 1", "true 1", "cancelled 1",
        "enqueued 2", "started 2", "ended 2 well", "enqueued 3", "cancelled 3",
      ]
    )
  }

  @Test func `a driver tries again with the value of its error`() {
    let failures = Locked(0)
    let owner = Locked<LastOutValueQueue<Int, Int>?>(nil)
    let queue = LastOutValueQueue<Int, Int>(
      clock: clock,
      onError: { key, value, _ in
        owner.withLock { $0 }?.enqueue(value, forKey: key, delay: .seconds(1))
      },
      handler: { [log] _, value, _ in
        if failures.withLock({
          $0 += 1; return $0
        }) < 3 {
          throw Broken()
        }
        log("\(value)")
      }
    )
    owner.withLock { [queue] in $0 = queue }
    queue.enqueue(40, forKey: 1)
    clock.advance(by: .seconds(2))
    clock.advance(by: .seconds(1))
    #expect(log.lines.isEmpty)
    clock.advance(by: .seconds(1))
    #expect(log.lines == ["40"])
    owner.withLock { $0 = nil }
  }

  @Test func `every closure may be asynchronous, throw, or belong to the main actor`() async {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)), onError: { _, _ in })
    let runs = [
      queue.enqueue(forKey: "a", onStart: { [log] in await log.add("onStart") }) { [log] in
        log("a")
      },
      queue.enqueue(forKey: "b", onStart: { @MainActor [log] in log("main") }) { [log] in
        await log.add("b")
      },
      queue.enqueue(forKey: "c", onStart: { throw Broken() }) { [log] in await log.add("never") },
      queue.enqueue(forKey: "d", onStart: { @MainActor in throw Broken() }) { @MainActor in },
    ]
    for key in ["a", "b", "c", "d"] { await OwnThread.run { _ = queue.flush(forKey: key) } }
    for run in runs.prefix(2) {
      guard case .completed = await run.outcome else { return _ = Issue.record("not completed") }
    }
    for run in runs.suffix(2) {
      guard case .failed = await run.outcome else { return _ = Issue.record("not failed") }
    }
    #expect(log.lines == ["onStart", "a", "main", "b"])
  }

  @Test func `debounced functions and delayed tasks accept every closure`() async {
    let save = debounce(delay: .seconds(3600))
    for task in [save { [log] in log("1") }, save { [log] in await log.add("2") }] {
      await OwnThread.run { _ = save.flush() }
      _ = await task.outcome
    }
    let main = save { @MainActor [log] in
      MainActor.preconditionIsolated()
      log("3")
    }
    await OwnThread.run { _ = save.flush() }
    _ = await main.outcome
    let tasks = [
      DelayedTask(after: .seconds(3600)) { [log] in await log.add("4") },
      DelayedTask(after: .seconds(3600)) { @MainActor [log] in log("5") },
    ]
    for task in tasks {
      #expect(await OwnThread.run { task.runNow() })
      #expect(await OwnThread.run { !task.runNow() })
    }
    #expect(log.lines == ["2", "3", "4", "5"])
  }

  @Test func `an asynchronous handler runs on the executor of its queue`() async {
    let serial = DispatchQueue(label: "serial")
    let queue = LastOutValueQueue<Int, Int>(executor: .queue(serial)) { [log] _, _, _ in
      dispatchPrecondition(condition: .onQueue(serial))
      await Task.yield()
      dispatchPrecondition(condition: .onQueue(serial))
      log("ran")
    }
    queue.enqueue(1, forKey: 1)
    await queue.drain()
    #expect(log.lines == ["ran"])
  }

  @Test func `debounce and throttle are names of policies`() async {
    #expect(Policy.debounce(for: .seconds(1)) == Policy(delay: .seconds(1)))
    #expect(Policy.throttle(for: .milliseconds(200)) == .live)
    for await value in (1...3).async.debounce(for: .seconds(3600)) { log("\(value)") }
    #expect(log.lines == ["3"])
    for await value in (1...3).async.throttle(for: .seconds(3600)) { log("throttled \(value)") }
    #expect(log.lines.last == "throttled 3")
  }
}

extension Log {
  func add(_ line: String) async { self(line) }
}

extension ClosedRange<Int> {
  /// The elements, as an asynchronous sequence.
  fileprivate var async: AsyncStream<Int> {
    AsyncStream { continuation in
      for element in self { continuation.yield(element) }
      continuation.finish()
    }
  }
}

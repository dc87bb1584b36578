// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import Synchronization
import Testing

/// Blocking tasks delay neither other keys nor watchdogs.
@Suite struct SlowTaskTests {
  private static var patience: DispatchTime { .now() + .seconds(60) }
  private let log = Log()
  private let release = DispatchSemaphore(value: 0)

  /// Blocks so many tasks of keys that begin with `name` and waits until all of them run.
  private func block(_ queue: LastOutQueue, _ count: Int, name: String = "blocked") throws {
    let running = DispatchSemaphore(value: 0)
    for number in 0..<count {
      queue.enqueue(forKey: "\(name) \(number)", delay: .zero) { [release] in
        running.signal()
        release.wait()
      }
    }
    for _ in 0..<count { try #require(running.wait(timeout: Self.patience) == .success) }
  }

  private func unblock(_ count: Int) {
    for _ in 0..<count { release.signal() }
  }

  @Test func `tasks that block do not delay another key`() throws {
    let queue = LastOutQueue()
    try block(queue, 40)
    let done = DispatchSemaphore(value: 0)
    queue.enqueue(forKey: "fast", delay: .zero) { done.signal() }
    #expect(done.wait(timeout: Self.patience) == .success)
    unblock(40)
    queue.flushAll()
  }

  @Test func `a value that waits for a thread is replaced by a newer one`() throws {
    let queue = LastOutQueue(executor: .threads(limit: 1))
    try block(queue, 1)
    queue.enqueue(forKey: "lamp", delay: .zero) { [log] in log("10") }
    // Time for the driver to find it due.
    _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(50))
    #expect(queue.isPending(forKey: "lamp"))
    #expect(!queue.isRunning(forKey: "lamp"))
    queue.enqueue(forKey: "lamp", delay: .zero) { [log] in log("40") }
    unblock(1)
    queue.flushAll()
    #expect(log.lines == ["40"])
  }

  @Test func `a value that waits for its executor is replaced by a newer one`() {
    let executor = DispatchQueue(label: "busy")
    let queue = LastOutQueue(executor: .queue(executor))
    executor.suspend()
    queue.enqueue(forKey: "lamp", delay: .zero) { [log] in log("10") }
    _ = DispatchSemaphore(value: 0).wait(timeout: .now() + .milliseconds(50))
    queue.enqueue(forKey: "lamp", delay: .zero) { [log] in log("40") }
    executor.resume()
    queue.flushAll()
    #expect(log.lines == ["40"])
  }

  @Test func `a free thread runs the next due value`() throws {
    let queue = LastOutQueue(executor: .threads(limit: 2))
    try block(queue, 2)
    let done = DispatchGroup()
    for number in 0..<20 {
      done.enter()
      queue.enqueue(forKey: "key \(number)", delay: .milliseconds(number)) { done.leave() }
    }
    unblock(2)
    #expect(done.wait(timeout: Self.patience) == .success)
  }

  @Test func `three hundred blocked tasks do not silence a watchdog`() throws {
    let queues = (0..<6).map { _ in LastOutQueue() }
    for (number, queue) in queues.enumerated() { try block(queue, 50, name: "queue \(number)") }
    let full = LastOutQueue(executor: .threads(limit: 10))
    try block(full, 10, name: "full")
    for number in 0..<300 { full.enqueue(forKey: "waiting \(number)", delay: .zero) {} }
    let spoke = DispatchSemaphore(value: 0)
    let watchdog = Watchdog("section", timeout: .milliseconds(100)) { _, _ in spoke.signal() }
    #expect(spoke.wait(timeout: Self.patience) == .success)
    #expect(!watchdog.invalidate())
    unblock(310)
    for queue in queues + [full] { queue.flushAll() }
  }

  @Test func `a handler that blocks does not silence another watchdog`() throws {
    let entered = DispatchSemaphore(value: 0)
    let blocked = (0..<20).map { number in
      Watchdog("blocked \(number)", timeout: .zero) { [release] _, _ in
        entered.signal()
        release.wait()
      }
    }
    for _ in blocked { try #require(entered.wait(timeout: Self.patience) == .success) }
    let spoke = DispatchSemaphore(value: 0)
    let watchdog = Watchdog("section", timeout: .milliseconds(10)) { _, _ in spoke.signal() }
    #expect(spoke.wait(timeout: Self.patience) == .success)
    watchdog.invalidate()
    unblock(20)
  }
}

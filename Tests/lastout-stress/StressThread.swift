// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting

/// A thread of random operations on the shared queues and on its own tasks.
struct StressThread {
  static let queue = LastOutQueue(
    policy: Policy(delay: .microseconds(300), maxWait: .milliseconds(2))
  )
  static let values = LastOutValueQueue<Int, [Int]>(policy: .live) { key, value, _ in
    if value.first != key { print("wrong: key \(key) received \(value)") }
  }

  let number: Int
  let report: Report

  func run(until end: ContinuousClock.Instant) {
    var generator = SeededGenerator(seed: UInt64(number))
    let own = Newest(report: report)
    var value = 0
    while ContinuousClock.now < end {
      for _ in 0..<50 {
        value += 1
        act(Int.random(in: 0..<32, using: &generator), value, own, &generator)
      }
      report.count(50)
    }
    // The last value of a key of this thread always runs.
    let last = value + 1
    Self.queue.enqueue(forKey: "own \(number)") { own.run(last) }
    Self.queue.flushAll(timeout: .seconds(60))
    if own.newest != last { report.fail("thread \(number): \(own.newest) ran last, not \(last)") }
  }

  private func act(
    _ choice: Int,
    _ value: Int,
    _ own: Newest,
    _ generator: inout SeededGenerator
  ) {
    let shared = "key \(Int.random(in: 0..<6, using: &generator))"
    let number = Int.random(in: 0..<6, using: &generator)
    switch choice {
    case 0: Self.queue.cancel(forKey: shared)
    case 1: Self.queue.flush(forKey: shared)
    case 2: Self.values.cancel(forKey: number)
    case 3: Self.values.flush(forKey: number)
    case 4: Self.queue.setPolicy(value % 2 == 0 ? .live : .standard, forKey: shared)
    case 5: if value % 64 == 5 { Self.queue.flushAll(timeout: .milliseconds(1)) }
    case 6: if value % 64 == 6 { Self.values.flushAll() }
    case 7: if value % 256 == 7 { Self.queue.cancelAll() }
    case 8: _ = (Self.queue.pendingKeys, Self.values.pendingCount)
    case 9: Self.queue.enqueue(forKey: "once \(value) of \(self.number)", delay: .zero) {}
    case 10: tasks(value)
    case 11:
      Self.queue.enqueue(forKey: shared, delay: .zero) { [report] in
        await Task.yield()
        report.ran()
      }
    case 12:
      Self.queue.enqueue(forKey: shared) {
        Self.queue.enqueue(forKey: "nested") {}
        Self.queue.flushAll()
      }
    case 13...18: Self.values.enqueue([number, value], forKey: number)
    case 19...23: Self.queue.enqueue(forKey: shared) { [report] in report.ran() }
    case 24:
      let run = Self.queue.enqueue(forKey: shared) { [report] in
        await Task.yield()
        report.ran()
      }
      if value % 2 == 0 { run.cancel() }
    default: Self.queue.enqueue(forKey: "own \(self.number)") { own.run(value) }
    }
  }

  private func tasks(_ value: Int) {
    let task = DelayedTask(after: .microseconds(value % 200)) { [report] in report.ran() }
    if value % 2 == 0 { task.cancel() } else { task.runNow() }
    let watchdog = Watchdog("stress", timeout: .microseconds(100), repeats: true) { _, _ in }
    watchdog.invalidate()
    let save = debounce(delay: .microseconds(50))
    save { [report] in report.ran() }
    save.flush()
  }
}

/// Checks that the runs of one key never overlap and never go back.
final class Newest: Sendable {
  private let state = Locked((value: 0, isActive: false))
  private let report: Report

  init(report: Report) { self.report = report }

  var newest: Int { state.withLock { $0.value } }

  func run(_ value: Int) {
    let isWrong = state.withLock { state in
      defer { state = (max(value, state.value), true) }
      return state.isActive || value <= state.value
    }
    if isWrong { report.fail("a run overlapped or went back to \(value)") }
    report.ran()
    state.withLock { $0.isActive = false }
  }
}

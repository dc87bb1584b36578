// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Foundation
import LastOut
import LastOutTesting
import Synchronization
import Testing

/// The resources of queues: threads, names, and the behavior without available threads.
@Suite struct ResourceTests {
  private static var patience: DispatchTime { .now() + .seconds(60) }

  @Test func `four thousand queues share their threads`() async {
    await #expect(processExitsWith: .success) {
      let before = Machine.threads
      let done = DispatchGroup()
      let queues = (0..<4000).map { _ in LastOutQueue(policy: Policy(delay: .milliseconds(1))) }
      for queue in queues {
        done.enter()
        queue.enqueue(forKey: "k") { done.leave() }
      }
      precondition(done.wait(timeout: Self.patience) == .success)
      let after = Machine.threads
      precondition(after - before < 100, "\(after - before) threads for 4,000 queues")
      withExtendedLifetime(queues) {}
    }
  }

  @Test func `a released queue is freed, whatever its driver does`() {
    let ended = DispatchSemaphore(value: 0)
    do {
      let queue = LastOutQueue(onError: Ending(ended).report)
      let ran = DispatchSemaphore(value: 0)
      queue.enqueue(forKey: "k", delay: .zero) { ran.signal() }
      #expect(ran.wait(timeout: Self.patience) == .success)
      queue.enqueue(forKey: "k", delay: .seconds(3600)) {}
    }
    #expect(ended.wait(timeout: Self.patience) == .success)
  }

  @Test func `names of keys that were used once are given back`() {
    let clock = LastOutTestClock()
    let queue = clock.queue(policy: Policy(delay: .zero))
    let values = LastOutValueQueue<Int, Int>(policy: Policy(delay: .zero), clock: clock) {
      _,
      _,
      _ in
    }
    for number in 0..<100_000 {
      queue.enqueue(forKey: "a name that is longer than the short ones are: \(number)") {}
      values.enqueue(1, forKey: number)
      clock.advance(by: .nanoseconds(1))
    }
    #expect(queue.nameCount < 10_000)
    #expect(values.nameCount < 10_000)
  }

  @Test func `a key with a policy of its own keeps its name and its policy`() {
    let clock = LastOutTestClock()
    let log = Log()
    let queue = clock.queue(policy: Policy(delay: .zero))
    queue.setPolicy(Policy(delay: .seconds(5)), forKey: "own")
    for number in 0..<20_000 {
      queue.enqueue(forKey: "once \(number)") {}
      clock.advance(by: .nanoseconds(1))
    }
    queue.enqueue(forKey: "own") { log("own") }
    clock.advance(by: .seconds(4))
    #expect(log.lines.isEmpty)
    clock.advance(by: .seconds(1))
    #expect(log.lines == ["own"])
  }

  @Test(arguments: ["pendingKeys", "cancelAll"])
  func `a change beside a call about all keys does not wait for all of them`(call: String) {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    for number in 0..<100_000 { queue.enqueue(forKey: "\(number)") {} }
    let (isDone, changes) = (Locked(false), Locked(0))
    let ended = DispatchSemaphore(value: 0)
    Thread.detachNewThread {
      while !isDone.withLock({ $0 }) {
        queue.enqueue(forKey: "beside") {}
        changes.withLock { $0 += 1 }
        usleep(10)
      }
      ended.signal()
    }
    while changes.withLock({ $0 }) == 0 {}
    let before = changes.withLock { $0 }
    if call == "cancelAll" {
      #expect(queue.cancelAll() >= 100_000)
    } else {
      #expect(queue.pendingKeys.count >= 100_000)
    }
    // With the lock held for all keys, no more than two changes would end meanwhile.
    #expect(changes.withLock { $0 } - before > 10)
    isDone.withLock { $0 = true }
    #expect(ended.wait(timeout: Self.patience) == .success)
  }

  @Test func `a lack of threads is reported, and the value runs when there are threads again`()
    async
  {
    await #expect(processExitsWith: .success) {
      let clock = ContinuousClock()
      let start = clock.now
      let ran = DispatchSemaphore(value: 0)
      let queue = LastOutQueue(policy: Policy(delay: .milliseconds(1)))
      Machine.forbidThreads()
      queue.enqueue(forKey: "k") { ran.signal() }
      precondition(ran.wait(timeout: .now() + .milliseconds(300)) == .timedOut)
      Machine.allowThreads()
      precondition(ran.wait(timeout: Self.patience) == .success)
      precondition(clock.now - start < .seconds(50))
    }
  }
}

/// Signals when nothing refers to it any more.
private final class Ending: Sendable {
  private let semaphore: DispatchSemaphore

  init(_ semaphore: DispatchSemaphore) { self.semaphore = semaphore }

  deinit { semaphore.signal() }

  func report(_ key: String, _ error: any Error) {}
}

/// The resources of this process.
private enum Machine {
  static var threads: Int {
    (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count) ?? 0
  }

  /// Uses up the address space for further threads' stacks.
  static func forbidThreads() {
    let statm = (try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8)) ?? ""
    let pages = statm.split(separator: " ").first.flatMap { UInt($0) } ?? 0
    var limit = rlimit()
    unsafe getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
    limit.rlim_cur = pages * UInt(sysconf(Int32(_SC_PAGESIZE))) + (4 << 20)
    unsafe setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
  }

  static func allowThreads() {
    var limit = rlimit()
    unsafe getrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
    limit.rlim_cur = limit.rlim_max
    unsafe setrlimit(__rlimit_resource_t(RLIMIT_AS.rawValue), &limit)
  }
}

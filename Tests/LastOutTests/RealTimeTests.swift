// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import Synchronization
import Testing

/// The few rules that need real threads; each waits for events, with a deadline.
@Suite struct RealTimeTests {
  private static var patience: DispatchTime { .now() + .seconds(60) }

  @Test func `runs of one key never overlap and its last value is never lost`() {
    let queue = LastOutQueue(policy: Policy(delay: .microseconds(300), maxWait: .milliseconds(2)))
    let keys = (0..<12).map { Probe(name: "key \($0)") }
    let changes = 3000
    let group = DispatchGroup()
    for _ in keys { group.enter() }
    // Four threads change three keys each; a fifth flushes all of them all the time.
    DispatchQueue.concurrentPerform(iterations: 5) { thread in
      if thread == 4 {
        for number in 0..<2000 {
          queue.flush(forKey: "key \(number % 12)")
          if number % 100 == 0 { queue.executePendingTasks() }
        }
        return
      }
      for value in 1...changes {
        for key in keys[(thread * 3)..<(thread * 3 + 3)] {
          queue.enqueue(forKey: key.name) {
            key.run(value)
            if value == changes { group.leave() }
          }
        }
      }
    }
    #expect(group.wait(timeout: Self.patience) == .success)
    for key in keys {
      #expect(key.last == changes)
      #expect(key.mistakes == 0, "\(key.name) overlapped or went back")
    }
  }

  @Test func `a cancel either drops the task or reports that it has started`() {
    let queue = LastOutQueue(policy: Policy(delay: .zero))
    let ran = Atomic(0)
    let started = Atomic(0)
    let cancelled = Atomic(0)
    DispatchQueue.concurrentPerform(iterations: 4) { thread in
      for _ in 0..<2000 {
        queue.enqueue(forKey: "key \(thread)") { ran.add(1, ordering: .relaxed) }
        switch queue.cancel(forKey: "key \(thread)") {
        case .cancelled: cancelled.add(1, ordering: .relaxed)
        case .alreadyStarted, .nothing: started.add(1, ordering: .relaxed)
        }
      }
    }
    let idle = DispatchGroup()
    for thread in 0..<4 {
      idle.enter()
      queue.enqueue(forKey: "key \(thread)") { idle.leave() }
    }
    #expect(idle.wait(timeout: Self.patience) == .success)
    #expect(ran.load(ordering: .relaxed) == started.load(ordering: .relaxed))
    #expect(cancelled.load(ordering: .relaxed) + started.load(ordering: .relaxed) == 8000)
  }

  @Test func `nothing runs early`() {
    let queue = LastOutQueue()
    let clock = ContinuousClock()
    let early = Atomic(0)
    let group = DispatchGroup()
    for number in 0..<200 {
      let delay = Duration.microseconds(number * 137 % 20_000)
      group.enter()
      let start = clock.now
      queue.enqueue(forKey: "key \(number)", delay: delay) {
        if clock.now - start < delay { early.add(1, ordering: .relaxed) }
        group.leave()
      }
    }
    #expect(group.wait(timeout: Self.patience) == .success)
    #expect(early.load(ordering: .relaxed) == 0)
  }

  @Test func `a slow task does not delay another key`() {
    let queue = LastOutQueue(policy: Policy(delay: .zero))
    let slow = DispatchSemaphore(value: 0)
    let done = DispatchSemaphore(value: 0)
    queue.enqueue(forKey: "slow") { slow.wait() }
    queue.enqueue(forKey: "fast") {
      // Would never be reached if the slow task held the queue up.
      slow.signal()
      done.signal()
    }
    #expect(done.wait(timeout: Self.patience) == .success)
  }

  @Test func `a watchdog speaks while the thread it watches is blocked`() {
    let spoke = DispatchSemaphore(value: 0)
    let watchdog = Watchdog("section", timeout: .milliseconds(5)) { _, _ in spoke.signal() }
    #expect(spoke.wait(timeout: Self.patience) == .success)
    #expect(!watchdog.invalidate())
  }

  @Test func `delayed tasks and debounce functions run by themselves`() {
    let group = DispatchGroup()
    group.enter()
    group.enter()
    DelayedTask(after: .milliseconds(2)) { group.leave() }
    debounce(delay: .milliseconds(1))({ group.leave() })
    #expect(group.wait(timeout: Self.patience) == .success)
  }
}

/// Watches the runs of one key.
private final class Probe: Sendable {
  let name: String
  private let isActive = Atomic(false)
  private let newest = Atomic(0)
  private let wrong = Atomic(0)

  init(name: String) { self.name = name }

  var last: Int { newest.load(ordering: .acquiring) }
  var mistakes: Int { wrong.load(ordering: .acquiring) }

  func run(_ value: Int) {
    if isActive.exchange(true, ordering: .acquiringAndReleasing) {
      wrong.add(1, ordering: .relaxed)
    }
    if newest.exchange(value, ordering: .acquiringAndReleasing) >= value {
      wrong.add(1, ordering: .relaxed)
    }
    isActive.store(false, ordering: .releasing)
  }
}

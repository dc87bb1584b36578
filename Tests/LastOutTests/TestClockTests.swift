// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// The test clock as a `Clock`.
@Suite struct TestClockTests {
  private let clock = LastOutTestClock()
  private let log = Log()

  @Test func `tasks that sleep by it wake in the order of their deadlines`() async throws {
    let sleepers = (1...3).map { number in
      Task { [clock, log] in
        try await clock.sleep(for: .seconds(number))
        log("\(number) at \(clock.now)")
      }
    }
    await clock.sleepers(3)
    for _ in 1...3 {
      clock.advance(by: .seconds(1))
    }
    for sleeper in sleepers { try await sleeper.value }
    #expect(log.lines.sorted().map(\.first) == ["1", "2", "3"])
  }

  @Test func `a task that is cancelled wakes with an error`() async {
    let sleeper = Task { [clock] in try await clock.sleep(for: .seconds(1)) }
    await clock.sleepers()
    sleeper.cancel()
    await #expect(throws: CancellationError.self) { try await sleeper.value }
    #expect(clock.nextDeadline == nil)
  }

  @Test func `a deadline that has passed is no sleep`() async throws {
    clock.advance(by: .seconds(1))
    try await clock.sleep(until: LastOutTestClock.Instant(.seconds(1)))
    #expect(clock.now.duration(to: clock.now.advanced(by: .seconds(2))) == .seconds(2))
  }

  @Test func `an asynchronous task of a queue sleeps by the same clock`() async {
    let queue = clock.queue(policy: Policy(delay: .seconds(1)))
    let run = queue.enqueue(forKey: "lamp") { [clock, log] in
      try await clock.sleep(for: .seconds(5))
      log("sent at \(clock.now)")
    }
    clock.advance(by: .seconds(1))
    await clock.sleepers()
    queue.enqueue(forKey: "lamp") { [clock, log] in log("next at \(clock.now)") }
    clock.advance(by: .seconds(5))
    _ = await run.outcome
    await queue.drain()
    #expect(log.lines == ["sent at 6.0 seconds", "next at 6.0 seconds"])
  }

  @Test func `a watchdog and a delayed task live by it too`() {
    let watchdog = Watchdog("section", timeout: .seconds(1), clock: clock) { [log] name, elapsed in
      log("\(name) \(elapsed)")
    }
    DelayedTask(after: .seconds(2), clock: clock) { [log] in log("late") }
    clock.advance(by: .seconds(3))
    #expect(log.lines == ["section 1.0 seconds", "late"])
    watchdog.invalidate()
  }
}

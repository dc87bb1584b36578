// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// The queue of values, whose keys are of any type.
@Suite struct ValueQueueTests {
  private struct Light: Hashable, Sendable {
    let room: Int
    let number: Int
  }

  private let clock = LastOutTestClock()
  private let log = Log()

  @Test func `the handler receives the newest value, its key and information about the run`() {
    let queue = LastOutValueQueue<Light, Int>(clock: clock) { [log] light, value, info in
      log("\(light.room).\(light.number)=\(value), \(info.collapsed) collapsed, \(info.lateness)")
    }
    for value in 1...10 { queue.enqueue(value, forKey: Light(room: 1, number: 2)) }
    queue.enqueue(7, forKey: Light(room: 3, number: 4))
    #expect(queue.pendingValue(forKey: Light(room: 1, number: 2)) == 10)
    clock.advance(by: .seconds(2))
    #expect(
      log.lines.sorted() == [
        "1.2=10, 9 collapsed, 0.0 seconds", "3.4=7, 0 collapsed, 0.0 seconds",
      ]
    )
  }

  @Test func `lateness is the time from the deadline to the start`() {
    let queue = LastOutValueQueue<Int, Int>(policy: Policy(delay: .seconds(1)), clock: clock) {
      [clock, log] _, value, info in
      log("\(value) \(info.lateness)")
      if value == 1 { clock.advance(by: .seconds(3)) }
    }
    queue.enqueue(1, forKey: 1)
    queue.enqueue(2, forKey: 2)
    clock.advance(by: .seconds(1))
    #expect(log.lines.contains("1 0.0 seconds"))
    #expect(log.lines.count == 2)
  }

  @Test func `a handler that throws harms no other key`() {
    struct Broken: Error {}
    let queue = LastOutValueQueue<Int, Int>(
      clock: clock,
      onError: { [log] key, value, error in log("\(key)=\(value): \(error)") },
      handler: { [log] key, value, _ in
        if key == 1 { throw Broken() }
        log("\(key)=\(value)")
      }
    )
    queue.enqueue(1, forKey: 1)
    queue.enqueue(2, forKey: 2)
    clock.advance(by: .seconds(2))
    #expect(log.lines.sorted() == ["1=1: Broken()", "2=2"])
  }

  @Test func `the verbs are those of the queue of closures`() {
    let queue = LastOutValueQueue<Int, Int>(clock: clock) { [log] key, value, _ in
      log("\(key)=\(value)")
    }
    queue.setPolicy(.live, forKey: 1)
    queue.enqueue(1, forKey: 1)
    #expect(log.lines == ["1=1"])
    for key in 2...5 { queue.enqueue(key, forKey: key, delay: .seconds(9)) }
    #expect(queue.cancel(forKey: 2) == .cancelled)
    #expect(queue.flush(forKey: 3) == .ran)
    #expect(queue.isPending(forKey: 4) && !queue.isRunning(forKey: 4))
    #expect(queue.pendingKeys.sorted() == [4, 5])
    #expect(queue.cancelAll() == 2)
    queue.enqueue(6, forKey: 6)
    queue.flushAll()
    #expect(queue.pendingCount == 0)
    #expect(log.lines == ["1=1", "3=3", "6=6"])
  }

  @Test func `an asynchronous handler ends the run with its return`() async {
    let queue = LastOutValueQueue<String, Int>(policy: Policy(delay: .seconds(3600))) {
      [log] key, value, _ in
      try await Task.sleep(for: .milliseconds(2))
      log("\(key)=\(value)")
    }
    queue.enqueue(1, forKey: "lamp")
    await queue.drain()
    queue.enqueue(2, forKey: "lamp")
    queue.enqueue(3, forKey: "lamp")
    await queue.drain()
    #expect(log.lines == ["lamp=1", "lamp=3"])
  }

  @Test func `leading only runs the first value of a burst`() {
    let policy = Policy.leadingOnly(delay: .milliseconds(100))
    let queue = LastOutValueQueue<Int, Int>(policy: policy, clock: clock) { [log] _, value, _ in
      log("\(value)")
    }
    for value in 1...5 { queue.enqueue(value, forKey: 1) }
    clock.advance(by: .seconds(1))
    queue.enqueue(6, forKey: 1)
    clock.advance(by: .seconds(1))
    #expect(log.lines == ["1", "6"])
  }

  @Test func `live runs are 200 ms apart across bursts`() {
    let queue = LastOutValueQueue<Int, Int>(policy: .live, clock: clock) {
      [clock, log] _, value, _ in
      log("\(clock.now): \(value)")
    }
    for time in [0, 10, 212] {
      clock.advance(to: .milliseconds(time))
      queue.enqueue(time, forKey: 1)
    }
    clock.advance(by: .seconds(1))
    #expect(log.lines == ["0.0 seconds: 0", "0.2 seconds: 10", "0.4 seconds: 212"])
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting
import Testing

/// The samples about values, asynchronous tasks and sequences.
@Suite struct AsyncSamples {
  private struct DeviceID: Hashable {
    let name: String
  }

  private struct Change {
    let device: String
    let value: Int
  }

  private struct Lamp {
    let log: Log

    func send(_ brightness: Int) async throws { log("\(brightness)") }
  }

  @MainActor private final class Label {
    var text = ""
  }

  private let log = Log()

  @Test func `a queue of values`() {
    let queue = LastOutValueQueue<DeviceID, Int>(policy: .live) { device, brightness, info in
      log("\(device.name) \(brightness), \(info.collapsed) collapsed")
    }
    queue.enqueue(40, forKey: DeviceID(name: "desk lamp"))
    queue.flushAll()
    #expect(log.lines == ["desk lamp 40, 0 collapsed"])
  }

  @Test func `an asynchronous task and its outcome`() async {
    let lamp = Lamp(log: log)
    let queue = LastOutQueue(policy: Policy(delay: .zero))
    let run = queue.enqueue(forKey: "desk-lamp/brightness") {
      try await lamp.send(40)
    }
    switch await run.outcome {
    case .completed: log("sent")
    case .failed(let error): log("failed: \(error)")
    case .dropped: log("replaced by a newer one")
    case .cancelled: log("cancelled")
    }
    #expect(log.lines == ["40", "sent"])
  }

  @Test func `where tasks run`() async {
    let label = Label()
    let queue = LastOutQueue()
    queue.enqueue(forKey: "label") { @MainActor in
      label.text = "saved"
    }
    let main = LastOutQueue(policy: .live, executor: .mainActor)
    let quiet = LastOutQueue(executor: .threads(priority: .background))
    for queue in [queue, main, quiet] { await queue.drain() }
    #expect(await label.text == "saved")
  }

  @Test func `a sequence that settles`() async {
    let policy = Policy(delay: .seconds(1))
    let changes = AsyncStream { continuation in
      for value in 1...3 { continuation.yield(Change(device: "lamp", value: value)) }
      continuation.finish()
    }
    for await change in changes.settled(by: policy, keyedBy: \.device) {
      log("\(change.device) \(change.value)")
    }
    #expect(log.lines == ["lamp 3"])
  }

  @Test func `the end of a program`() {
    let queue = LastOutQueue()
    queue.enqueue(forKey: "lamp") { log("on") }
    let late = queue.flushAll(timeout: .seconds(5))
    if !late.isEmpty { log("not done: \(late)") }
    #expect(log.lines == ["on"])
  }

  @Test func `a task under test sleeps`() async {
    let clock = LastOutTestClock()
    let queue = LastOutQueue(clock: clock)
    let run = queue.enqueue(forKey: "lamp", delay: .zero) {
      try await clock.sleep(for: .seconds(5))
    }
    clock.advance(by: .zero)
    await clock.sleepers()
    clock.advance(by: .seconds(5))
    _ = await run.outcome
    #expect(clock.elapsed == .seconds(5))
  }
}

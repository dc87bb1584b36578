// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Types that programs have, under names that the library might have taken: both can be used.
struct Moment {}
struct KeyTable {}
struct Job {}
struct Event {}
struct Policy {
  var name = "a policy of the program's own"
}

@main
struct App {
  static func main() async {
    let queue = LastOutQueue(policy: .init(delay: .milliseconds(20), maxWait: .milliseconds(100)))
    for brightness in 1...40 {
      queue.enqueue(forKey: "desk-lamp/brightness") { print("plain \(brightness)") }
    }
    queue.setPolicy(LastOut.Policy(delay: .zero), forKey: "other")
    let run = queue.enqueue(forKey: "async", delay: .zero) {
      try await Task.sleep(for: .milliseconds(1))
      print("async")
    }
    guard case .completed = await run.outcome else { return }
    let values = LastOutValueQueue<Int, String>(policy: .live) { key, value, info in
      print("value \(key) \(value) \(info.collapsed)")
    }
    values.enqueue("a", forKey: 1)
    values.flushAll()
    await queue.drain()
    let changes = AsyncStream { continuation in
      for value in 1...3 { continuation.yield(value) }
      continuation.finish()
    }
    for await value in changes.settled(by: .standard, keyedBy: { $0 % 2 }) {
      print("settled \(value)")
    }
    let watchdog = Watchdog("section", timeout: .seconds(5))
    let save = debounce(delay: .seconds(1))
    save { print("saved") }
    save.flush()
    DelayedTask(after: .seconds(5)) { print("late") }.cancel()
    watchdog.invalidate()
    _ = (Moment(), KeyTable(), Job(), Event(), Policy())
  }
}

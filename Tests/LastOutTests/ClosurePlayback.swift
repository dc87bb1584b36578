// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import LastOutTesting

/// Plays a timeline through a queue of closures on a test clock.
final class ClosurePlayback: Sendable {
  struct Run: Sendable {
    let at: Duration
    let key: String
    let value: String
  }

  private let clock = LastOutTestClock()
  private let queue: LastOutQueue
  private let reactions: [String: [TimelinePlayer<String>.Step]]
  private let runs = Locked<[Run]>([])

  init(
    policy: Policy,
    policies: [String: Policy] = [:],
    reactions: [String: [TimelinePlayer<String>.Step]] = [:]
  ) {
    queue = LastOutQueue(policy: policy, clock: clock)
    for (key, policy) in policies { queue.setPolicy(policy, forKey: key) }
    self.reactions = reactions
  }

  func play(_ events: [TimelinePlayer<String>.Event]) -> [Run] {
    for event in events {
      if event.at > clock.elapsed { clock.advance(to: event.at) }
      apply(event.step)
    }
    while let next = clock.nextDeadline { clock.advance(to: max(next, clock.elapsed)) }
    return runs.withLock { $0 }
  }

  private func apply(_ step: TimelinePlayer<String>.Step) {
    switch step {
    case .set(let key, let value, let delay):
      queue.enqueue(forKey: key, delay: delay) { [unowned self] in ran(key, value) }
    case .cancel(let key): queue.cancel(forKey: key)
    case .cancelAll: queue.cancelAll()
    case .flush(let key): queue.flush(forKey: key)
    case .flushAll: queue.flushAll()
    }
  }

  private func ran(_ key: String, _ value: String) {
    let run = Run(at: clock.elapsed, key: key, value: value)
    runs.withLock { $0.append(run) }
    for step in reactions["\(key)=\(value)"] ?? [] { apply(step) }
  }
}

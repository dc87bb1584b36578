// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// One playback: a queue on its own clock, and its runs so far.
struct Playback<Value: Sendable> {
  typealias Player = TimelinePlayer<Value>

  private let clock = LastOutTestClock()
  private let runs = Locked<[Player.Run]>([])
  private let queue: LastOutValueQueue<String, Value>

  init(player: Player, reaction: @escaping (Player.Run) -> [Player.Step]) {
    // Every value runs on the playing thread, which enqueues the values and moves the clock.
    nonisolated(unsafe) let reaction = reaction
    let owner = Locked<Weak>(Weak())
    let duration = player.runDuration
    queue = LastOutValueQueue(policy: player.policy, clock: clock) {
      [clock, runs] key, value, info in
      let run = Player.Run(at: clock.elapsed, key: key, value: value, collapsed: info.collapsed)
      runs.withLock { $0.append(run) }
      for step in unsafe reaction(run) {
        if let queue = owner.withLock({ $0.queue }) { Self.apply(step, to: queue) }
      }
      guard duration > .zero else { return }
      let end = RunMark.detach()
      _ = clock.hands.schedule(at: clock.hands.now.advanced(by: duration)) { end() }
    }
    owner.withLock { [queue] in $0.queue = queue }
    for (name, policy) in player.policies { queue.setPolicy(policy, forKey: name) }
  }

  func play(_ events: [Player.Event]) -> [Player.Run] {
    for event in events {
      precondition(event.at >= clock.elapsed, "Events must be in the order of time.")
      if event.at > clock.elapsed { clock.advance(to: event.at) }
      Self.apply(event.step, to: queue)
    }
    while let next = clock.nextDeadline { clock.advance(to: max(next, clock.elapsed)) }
    return runs.withLock { $0 }
  }

  private static func apply(
    _ step: Player.Step,
    to queue: LastOutValueQueue<String, Value>
  ) {
    switch step {
    case .set(let key, let value, let delay): queue.enqueue(value, forKey: key, delay: delay)
    case .cancel(let key): queue.cancel(forKey: key)
    case .cancelAll: queue.cancelAll()
    case .flush(let key): queue.flush(forKey: key)
    case .flushAll: queue.flushAll()
    }
  }

  private struct Weak {
    weak var queue: LastOutValueQueue<String, Value>?
  }
}

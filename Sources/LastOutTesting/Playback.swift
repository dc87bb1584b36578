// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// One run of a player: the queue, the virtual time, and what has left so far.
struct Playback<Value: Sendable>: ~Copyable {
  typealias Player = TimelinePlayer<Value>

  private let player: Player
  private var core: LastOutCore<Value>
  private var names = KeyTable()
  private var now = Moment.zero
  /// The runs that have not ended, oldest first, and when they end.
  private var running: [(key: KeyIndex, end: Moment)] = []
  private var runs: [Player.Run] = []

  init(player: Player) {
    self.player = player
    core = LastOutCore(policy: player.policy)
    for (name, policy) in player.policies {
      core.setPolicy(policy, for: names.intern(name))
    }
  }

  mutating func play(
    _ events: [Player.Event],
    reaction: (Player.Run) -> [Player.Step]
  ) -> [Player.Run] {
    for event in events {
      let moment = Moment.zero.advanced(by: event.at)
      precondition(moment >= now, "Events are in the order of time.")
      if moment > now { advance(to: moment, reaction) }
      apply(event.step, reaction)
    }
    advance(to: nil, reaction)
    return runs
  }

  /// Lets time pass until `end`, or until nothing waits for time.
  private mutating func advance(
    to end: Moment?,
    _ reaction: (Player.Run) -> [Player.Step]
  ) {
    while let next = nextMoment, next <= end ?? next {
      now = max(now, next)
      while let first = running.first, first.end <= now { finishFirst() }
      while let run = core.nextRun(at: now) { start(run, reaction) }
    }
    if let end { now = end }
  }

  private var nextMoment: Moment? {
    guard let deadline = core.nextDeadline else { return running.first?.end }
    return running.first.map { min($0.end, deadline) } ?? deadline
  }

  private mutating func finishFirst() {
    core.finish(running.removeFirst().key, at: now)
  }

  private mutating func apply(
    _ step: Player.Step,
    _ reaction: (Player.Run) -> [Player.Step]
  ) {
    switch step {
    case .set(let key, let value, let delay):
      core.enqueue(value, for: names.intern(key), at: now, delay: delay)
    case .cancel(let key): _ = core.cancel(names.intern(key))
    case .cancelAll: _ = core.cancelAll()
    case .flush(let key): flush(names.intern(key), reaction)
    case .flushAll: for key in core.pendingKeys() { flush(key, reaction) }
    }
    while let run = core.nextReady(at: now) { start(run, reaction) }
  }

  private mutating func flush(
    _ key: KeyIndex,
    _ reaction: (Player.Run) -> [Player.Step]
  ) {
    if case .run(let run) = core.flush(key, at: now) { start(run, reaction) }
  }

  private mutating func start(
    _ started: LastOutCore<Value>.Run,
    _ reaction: (Player.Run) -> [Player.Step]
  ) {
    let run = Player.Run(
      at: Moment.zero.duration(to: now),
      key: names.name(of: started.key),
      value: started.value,
      collapsed: started.collapsed
    )
    runs.append(run)
    for step in reaction(run) { apply(step, reaction) }
    if player.runDuration == .zero {
      core.finish(started.key, at: now)
      while let next = core.nextReady(at: now) { start(next, reaction) }
    } else {
      running.append((started.key, now.advanced(by: player.runDuration)))
    }
  }
}

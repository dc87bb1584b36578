// Settle
// SPDX-License-Identifier: Apache-2.0

public import LastOut

/// Plays changes against a policy on virtual time, and returns the runs with their times.
///
/// It does not sleep, and it is deterministic: the same events give the same runs.
public struct TimelinePlayer<Value: Sendable>: Sendable {
  /// An operation on the queue.
  public enum Step: Sendable {
    /// A change of a key, optionally with its own delay.
    case set(key: String, value: Value, delay: Duration?)
    /// Drops the pending value of a key.
    case cancel(key: String)
    /// Drops all pending values.
    case cancelAll
    /// Runs the pending value of a key now.
    case flush(key: String)
    /// Runs all pending values now.
    case flushAll
  }

  /// A step with its time.
  public struct Event: Sendable {
    /// The time since the start.
    public var at: Duration
    /// The step.
    public var step: Step

    /// Creates an event at a time since the start.
    public init(at: Duration, _ step: Step) {
      self.at = at
      self.step = step
    }

    /// A change of `key` to `value`.
    public static func set(
      _ key: String,
      _ value: Value,
      at: Duration,
      delay: Duration? = nil
    ) -> Event {
      Event(at: at, .set(key: key, value: value, delay: delay))
    }

    /// A cancel of `key`.
    public static func cancel(_ key: String, at: Duration) -> Event {
      Event(at: at, .cancel(key: key))
    }

    /// A flush of `key`.
    public static func flush(_ key: String, at: Duration) -> Event {
      Event(at: at, .flush(key: key))
    }
  }

  /// A run of a value.
  public struct Run: Sendable {
    /// The time since the start.
    public let at: Duration
    /// The key of the value.
    public let key: String
    /// The newest value of the key at that time.
    public let value: Value
    /// The number of changes replaced since the key's last run or cancel.
    public let collapsed: Int
  }

  /// The policy of keys that are not in ``policies``.
  public var policy: Policy
  /// The policies of individual keys.
  public var policies: [String: Policy]
  /// How long each run takes; the next run of its key waits for the end.
  public var runDuration: Duration

  /// Creates a player.
  public init(
    policy: Policy = .standard,
    policies: [String: Policy] = [:],
    runDuration: Duration = .zero
  ) {
    self.policy = policy
    self.policies = policies
    self.runDuration = max(runDuration, .zero)
  }

  /// Plays `events`, then advances the time until nothing is pending.
  ///
  /// Events of the same time are one batch. Values that are due at a time run before the events of
  /// that time.
  ///
  /// - Parameters:
  ///   - events: The events, in the order of time.
  ///   - reaction: The operations of a run on the queue, right after it starts.
  /// - Returns: The runs in order.
  public func play(
    _ events: [Event],
    reaction: (Run) -> [Step] = { _ in [] }
  ) -> [Run] {
    withoutActuallyEscaping(reaction) { reaction in
      Playback(player: self, reaction: reaction).play(events)
    }
  }
}

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

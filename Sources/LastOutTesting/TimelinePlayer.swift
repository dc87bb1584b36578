// Settle
// SPDX-License-Identifier: Apache-2.0

public import LastOut

/// Plays changes against a policy on virtual time and returns what would leave, and when.
///
/// Nothing sleeps and nothing is random: the same events give the same runs, at once.
public struct TimelinePlayer<Value: Sendable>: Sendable {
  /// Something that happens to the queue.
  public enum Step: Sendable {
    /// A change of a key, with a delay of its own if that is not `nil`.
    case set(key: String, value: Value, delay: Duration?)
    /// Drops what is pending for a key.
    case cancel(key: String)
    /// Drops everything that is pending.
    case cancelAll
    /// Runs what is pending for a key now.
    case flush(key: String)
    /// Runs everything that is pending now.
    case flushAll
  }

  /// A step and the time at which it happens.
  public struct Event: Sendable {
    /// The time since the beginning.
    public var at: Duration
    /// What happens.
    public var step: Step

    /// Creates an event that happens `at` after the beginning.
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

  /// A value that left.
  public struct Run: Sendable {
    /// The time since the beginning.
    public let at: Duration
    /// Whose value it is.
    public let key: String
    /// The newest value of the key at that time.
    public let value: Value
    /// Changes replaced since the key's last run or cancel.
    public let collapsed: Int
  }

  /// How keys settle that are not in ``policies``.
  public var policy: Policy
  /// How single keys settle.
  public var policies: [String: Policy]
  /// How long each run takes; the next one of its key waits for the end.
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

  /// Plays `events`, then lets time pass until nothing is pending.
  ///
  /// Events of the same time are one batch. Whatever is due at a time leaves before the events of
  /// that time.
  ///
  /// - Parameters:
  ///   - events: What happens, in the order of time.
  ///   - reaction: What a run itself does to the queue, right after it left.
  /// - Returns: The runs in the order in which they left.
  public func play(
    _ events: [Event],
    reaction: (Run) -> [Step] = { _ in [] }
  ) -> [Run] {
    withoutActuallyEscaping(reaction) { reaction in
      Playback(player: self, reaction: reaction).play(events)
    }
  }
}

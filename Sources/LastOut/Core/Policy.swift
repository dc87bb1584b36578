// Settle
// SPDX-License-Identifier: Apache-2.0

/// When a key settles: its quiet period, the longest wait, the shortest interval between runs, and
/// which edges of a burst run.
public struct Policy: Hashable, Sendable {
  /// The quiet period between the last change and the run of its value.
  public var delay: Duration

  /// The longest time between runs while changes keep coming; `nil` for no limit.
  ///
  /// A value below ``delay`` counts as ``delay``.
  public var maxWait: Duration?

  /// Whether the first change of a burst runs at once.
  public var leading: Bool

  /// The shortest time between the starts of two runs of a key, across bursts; zero for none.
  ///
  /// A value that is due earlier runs when the interval ends; the interval overrides ``maxWait``
  /// and ``leading``, and a cancel does not shorten it. A flush ignores the interval and restarts
  /// it.
  public var minInterval: Duration

  /// Whether the last change of a burst runs; `false` for ``leadingOnly(delay:minInterval:)``.
  public let trailing: Bool

  /// The default: a quiet period of two seconds.
  public static let standard = Policy(delay: .seconds(2))

  /// For live control: the first value at once, then one every 200 ms, and always the last.
  public static let live = Policy.throttle(for: .milliseconds(200))

  /// The last value, once there was none for `interval`.
  public static func debounce(for interval: Duration) -> Policy { Policy(delay: interval) }

  /// The first value at once, then the newest one after each `interval`, and always the last.
  public static func throttle(for interval: Duration) -> Policy {
    Policy(delay: interval, maxWait: interval, leading: true, minInterval: interval)
  }

  /// Creates a policy whose last value always runs; negative durations count as zero.
  public init(
    delay: Duration,
    maxWait: Duration? = nil,
    leading: Bool = false,
    minInterval: Duration = .zero
  ) {
    self.init(
      delay: delay,
      maxWait: maxWait,
      leading: leading,
      minInterval: minInterval,
      trailing: true
    )
  }

  /// A policy that runs the first change of a burst at once and drops the others.
  ///
  /// The burst ends after `delay` without a change; the next change runs at once again. Negative
  /// durations count as zero.
  public static func leadingOnly(delay: Duration, minInterval: Duration = .zero) -> Policy {
    Policy(delay: delay, maxWait: nil, leading: true, minInterval: minInterval, trailing: false)
  }

  private init(
    delay: Duration,
    maxWait: Duration?,
    leading: Bool,
    minInterval: Duration,
    trailing: Bool
  ) {
    self.delay = max(delay, .zero)
    self.maxWait = maxWait.map { max($0, .zero) }
    self.leading = leading
    self.minInterval = max(minInterval, .zero)
    self.trailing = trailing
  }
}

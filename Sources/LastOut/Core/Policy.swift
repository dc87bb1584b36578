// Settle
// SPDX-License-Identifier: Apache-2.0

/// How a key settles: how long it must be quiet, how long a burst may be held, how far apart its
/// runs are, and which edges of a burst run.
public struct Policy: Hashable, Sendable {
  /// The quiet period after the last change before a value leaves.
  public var delay: Duration

  /// The longest time between runs while changes keep coming; `nil` waits for quiet alone.
  ///
  /// A value below ``delay`` counts as ``delay``.
  public var maxWait: Duration?

  /// Whether the first change of a burst leaves at once.
  public var leading: Bool

  /// The shortest time between the starts of two runs of a key, across bursts; zero for none.
  ///
  /// A value that would leave earlier leaves when the interval ends, whatever ``maxWait`` and
  /// ``leading`` say, and a cancel does not shorten it. A flush ignores the interval and restarts it.
  public var minInterval: Duration

  /// Whether the last change of a burst leaves; `false` for ``leadingOnly(delay:minInterval:)``.
  public let trailing: Bool

  /// The library's default: two seconds of quiet.
  public static let standard = Policy(delay: .seconds(2))

  /// Follows the finger: a value at once, then one every 200 ms, and always the last.
  public static let live = Policy(
    delay: .milliseconds(200),
    maxWait: .milliseconds(200),
    leading: true,
    minInterval: .milliseconds(200)
  )

  /// Creates a policy whose last value always leaves; negative durations count as zero.
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

  /// Runs the first change of a burst at once and drops the others.
  ///
  /// The burst ends when there was no change for `delay`; the next change leads again. Negative
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

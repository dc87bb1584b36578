// Settle
// SPDX-License-Identifier: Apache-2.0

/// How a key settles: how long it must be quiet, how long a burst may be held, whether the first
/// change leaves at once.
public struct Policy: Hashable, Sendable {
  /// The quiet period after the last change before a value leaves.
  public var delay: Duration

  /// The longest time between runs while changes keep coming; `nil` waits for quiet alone.
  ///
  /// A value below ``delay`` counts as ``delay``.
  public var maxWait: Duration?

  /// Whether the first change of a burst leaves at once.
  public var leading: Bool

  /// The library's default: two seconds of quiet.
  public static let standard = Policy(delay: .seconds(2))

  /// Follows the finger: a value at once, then one every 200 ms, and always the last.
  public static let live = Policy(
    delay: .milliseconds(200),
    maxWait: .milliseconds(200),
    leading: true
  )

  /// Creates a policy; negative durations count as zero.
  public init(delay: Duration, maxWait: Duration? = nil, leading: Bool = false) {
    self.delay = max(delay, .zero)
    self.maxWait = maxWait.map { max($0, .zero) }
    self.leading = leading
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// The last element of each burst, when it has been quiet for as long as `policy` says.
  ///
  /// Elements with different keys settle on their own. When this sequence ends, what is pending is
  /// delivered at once, so the last element is never lost; an error follows what is pending. A slow
  /// consumer receives the newest element of each key, not every one: what waits is bounded by the
  /// number of keys.
  ///
  /// ```swift
  /// for try await change in changes.settled(by: .live, keyedBy: \.id) { … }
  /// ```
  ///
  /// - Parameters:
  ///   - policy: How elements settle.
  ///   - key: Which elements replace each other.
  ///   - clock: What the policy's times are measured by: the machine's monotonic clock.
  /// - Returns: A sequence of the elements that settled.
  public func settled<Key: Hashable & Sendable>(
    by policy: Policy,
    keyedBy key: @escaping @Sendable (Element) -> Key,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Key> {
    SettledSequence(base: self, policy: policy, clock: clock, key: key)
  }

  /// The last element of each burst, when it has been quiet for as long as `policy` says.
  ///
  /// When this sequence ends, what is pending is delivered at once.
  ///
  /// - Parameters:
  ///   - policy: How elements settle.
  ///   - clock: What the policy's times are measured by: the machine's monotonic clock.
  /// - Returns: A sequence of the elements that settled.
  public func settled(
    by policy: Policy,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Int> {
    SettledSequence(base: self, policy: policy, clock: clock) { _ in 0 }
  }
}

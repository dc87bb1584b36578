// Settle
// SPDX-License-Identifier: Apache-2.0

extension AsyncSequence where Self: Sendable, Element: Sendable {
  /// Returns the last element of each burst, once it has settled by `policy`.
  ///
  /// Elements with different keys settle independently. When this sequence ends, pending elements
  /// are delivered at once, so the last element is never lost; an error follows the pending
  /// elements. A slow consumer receives the newest element of each key, not every one: the number
  /// of waiting elements is bounded by the number of keys.
  ///
  /// ```swift
  /// for try await change in changes.settled(by: .live, keyedBy: \.id) { … }
  /// ```
  ///
  /// - Parameters:
  ///   - policy: When elements settle.
  ///   - key: The key of an element; elements of one key replace each other.
  ///   - clock: The clock; by default the machine's monotonic clock.
  /// - Returns: A sequence of the settled elements.
  public func settled<Key: Hashable & Sendable>(
    by policy: Policy,
    keyedBy key: @escaping @Sendable (Element) -> Key,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Key> {
    SettledSequence(base: self, policy: policy, clock: clock, key: key)
  }

  /// Returns the last element of each burst, once it has settled by `policy`.
  ///
  /// When this sequence ends, a pending element is delivered at once.
  ///
  /// - Parameters:
  ///   - policy: When elements settle.
  ///   - clock: The clock; by default the machine's monotonic clock.
  /// - Returns: A sequence of the settled elements.
  public func settled(
    by policy: Policy,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Int> {
    SettledSequence(base: self, policy: policy, clock: clock) { _ in 0 }
  }

  /// Returns the last element of each burst; another name for ``settled(by:clock:)`` with
  /// ``Policy/debounce(for:)``.
  ///
  /// Unlike the method of swift-async-algorithms, it also delivers an element that is pending when
  /// the sequence ends.
  public func debounce(
    for interval: Duration,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Int> {
    settled(by: .debounce(for: interval), clock: clock)
  }

  /// Returns the first element, then the newest one after each interval; another name for
  /// ``settled(by:clock:)`` with ``Policy/throttle(for:)``.
  ///
  /// Unlike the method of swift-async-algorithms, it always delivers the last element.
  public func throttle(
    for interval: Duration,
    clock: any Clock<Duration> = SuspendingClock()
  ) -> SettledSequence<Self, Int> {
    settled(by: .throttle(for: interval), clock: clock)
  }
}

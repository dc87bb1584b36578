// Settle
// SPDX-License-Identifier: Apache-2.0

public import LastOut

/// Shorthand for initializers with a clock.
extension LastOutTestClock {
  /// Creates a queue on this clock; errors of its tasks are ignored by default.
  public func queue(
    policy: Policy = .standard,
    onError: @escaping @Sendable (_ key: String, _ error: any Error) -> Void = { _, _ in }
  ) -> LastOutQueue {
    LastOutQueue(policy: policy, clock: self, onError: onError)
  }

  /// Creates a delayed task on this clock.
  @discardableResult
  public func delayedTask(
    after delay: Duration,
    task: @escaping @Sendable () -> Void
  ) -> DelayedTask {
    DelayedTask(after: delay, clock: self, task: task)
  }

  /// Creates a watchdog on this clock.
  public func watchdog(
    _ name: String,
    timeout: Duration,
    repeats: Bool = false,
    handler: @escaping @Sendable (_ name: String, _ elapsed: Duration) -> Void
  ) -> Watchdog {
    Watchdog(name, timeout: timeout, repeats: repeats, clock: self, handler: handler)
  }

  /// Creates a debounced function on this clock.
  public func debounce(delay: Duration) -> Debounce {
    Debounce(policy: Policy(delay: delay), clock: self)
  }
}

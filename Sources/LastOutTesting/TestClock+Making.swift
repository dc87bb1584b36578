// Settle
// SPDX-License-Identifier: Apache-2.0

public import LastOut

/// Short forms of initializers that take a clock.
extension TestClock {
  /// Makes a queue that lives by this clock; errors of its tasks are ignored unless asked for.
  public func queue(
    policy: Policy = .standard,
    onError: @escaping @Sendable (_ key: String, _ error: any Error) -> Void = { _, _ in }
  ) -> LastOutQueue {
    LastOutQueue(policy: policy, clock: self, onError: onError)
  }

  /// Makes a delayed task that lives by this clock.
  @discardableResult
  public func delayedTask(
    after delay: Duration,
    task: @escaping @Sendable () -> Void
  ) -> DelayedTask {
    DelayedTask(after: delay, clock: self, task: task)
  }

  /// Makes a watchdog that lives by this clock.
  public func watchdog(
    _ name: String,
    timeout: Duration,
    repeats: Bool = false,
    handler: @escaping @Sendable (_ name: String, _ elapsed: Duration) -> Void
  ) -> Watchdog {
    Watchdog(name, timeout: timeout, repeats: repeats, clock: self, handler: handler)
  }

  /// Makes a debounced function that lives by this clock.
  public func debounce(delay: Duration) -> Debounce {
    Debounce(policy: Policy(delay: delay), clock: self)
  }
}

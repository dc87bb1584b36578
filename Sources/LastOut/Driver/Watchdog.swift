// Settle
// SPDX-License-Identifier: Apache-2.0

/// Tells when a critical section takes longer than it should.
///
/// Make one before the section and ``invalidate()`` it after. If the time runs out first, the
/// handler is called on a concurrent pool, so a blocked thread cannot keep it from speaking. A
/// watchdog that goes away without having been invalidated counts as invalidated.
public final class Watchdog: Sendable {
  /// What the handler is called with first.
  public let name: String
  private let alarm: Alarm

  /// Starts to watch.
  ///
  /// - Parameters:
  ///   - name: What is watched.
  ///   - timeout: How long the section may take; negative counts as zero.
  ///   - repeats: Whether the handler is called again after each further `timeout`.
  ///   - handler: Receives the name and the time since the start. It is freed by ``invalidate()``.
  public convenience init(
    _ name: String,
    timeout: Duration,
    repeats: Bool = false,
    handler: @escaping @Sendable (_ name: String, _ elapsed: Duration) -> Void
  ) {
    self.init(name, timeout: timeout, repeats: repeats, engine: .shared, handler: handler)
  }

  package init(
    _ name: String,
    timeout: Duration,
    repeats: Bool,
    engine: QueueEngine,
    handler: @escaping @Sendable (_ name: String, _ elapsed: Duration) -> Void
  ) {
    self.name = name
    alarm = Alarm(name: name, timeout: timeout, repeats: repeats, engine: engine, handler: handler)
    alarm.arm()
  }

  deinit {
    alarm.invalidate()
  }

  /// Ends the watch; a handler that is being called goes on.
  ///
  /// - Returns: Whether the section ended in time: the handler was never called.
  @discardableResult
  public func invalidate() -> Bool {
    alarm.invalidate()
    return !alarm.hasFired
  }
}

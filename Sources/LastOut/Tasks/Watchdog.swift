// Settle
// SPDX-License-Identifier: Apache-2.0

/// Tells when a critical section takes longer than it should.
///
/// Make one before the section and ``invalidate()`` it after. If the time runs out first, the
/// handler is called on a thread that only handlers of watchdogs use, so neither a blocked section
/// nor blocked tasks can keep it from speaking. A watchdog that goes away without having been
/// invalidated counts as invalidated.
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
  ///   - clock: What the time is measured by: the machine's monotonic clock.
  ///   - handler: Receives the name and the time since the start; without it, both are written to
  ///     standard error. It is freed by ``invalidate()``.
  public init(
    _ name: String,
    timeout: Duration,
    repeats: Bool = false,
    clock: any Clock<Duration> = SuspendingClock(),
    handler: (@Sendable (_ name: String, _ elapsed: Duration) -> Void)? = nil
  ) {
    self.name = name
    alarm = Alarm(
      name: name,
      timeout: timeout,
      repeats: repeats,
      engine: .watchdogs(on: clock),
      handler: handler ?? Self.report
    )
    alarm.arm()
  }

  private static func report(name: String, elapsed: Duration) {
    StandardError.write("\(name) has taken \(elapsed) so far")
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

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Reports a critical section that takes too long.
///
/// Create one before the section and call ``invalidate()`` after it. If the timeout passes first,
/// the handler is called on a thread that only handlers of watchdogs use, so neither a blocked
/// section nor blocked tasks can delay it. Releasing a watchdog invalidates it.
public final class Watchdog: Sendable {
  /// The name, the handler's first argument.
  public let name: String
  private let alarm: Alarm

  /// Starts the watchdog.
  ///
  /// - Parameters:
  ///   - name: The name of the section.
  ///   - timeout: How long the section may take; negative counts as zero.
  ///   - repeats: Whether the handler is called again after each further `timeout`.
  ///   - clock: The clock; by default the machine's monotonic clock.
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

  /// Stops the watchdog; a handler that is already running continues.
  ///
  /// - Returns: Whether the section ended in time, that is, the handler was never called.
  @discardableResult
  public func invalidate() -> Bool {
    alarm.invalidate()
    return !alarm.hasFired
  }
}

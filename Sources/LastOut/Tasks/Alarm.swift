// Settle
// SPDX-License-Identifier: Apache-2.0

/// The state of a watchdog that its pending job retains.
final class Alarm: Sendable {
  private struct State: ~Copyable {
    /// `nil` once invalidated.
    var handler: (@Sendable (String, Duration) -> Void)?
    var hasFired = false
  }

  private let state: Locked<State>
  private let name: String
  private let timeout: Duration
  private let repeats: Bool
  private let start: Moment
  private let engine: TaskEngine
  private let key = TaskEngine.newKey()

  init(
    name: String,
    timeout: Duration,
    repeats: Bool,
    engine: TaskEngine,
    handler: @escaping @Sendable (String, Duration) -> Void
  ) {
    state = Locked(State(handler: handler))
    self.name = name
    // Repeating without an interval would never end.
    self.timeout = repeats ? max(timeout, .milliseconds(1)) : timeout
    self.repeats = repeats
    self.engine = engine
    start = engine.now
  }

  var hasFired: Bool { state.withLock { $0.hasFired } }

  func arm() {
    var body = LastOutTask.Body.plain { [self] in fire() }
    _ = engine.enqueue(&body, for: key, delay: timeout)
    // An invalidation in between had nothing to cancel.
    if state.withLock({ $0.handler == nil }) { _ = engine.cancel(key) }
  }

  func invalidate() {
    let handler = state.withLock { $0.handler.take() }
    _ = engine.cancel(key)
    withExtendedLifetime(handler) {}
  }

  private func fire() {
    let handler = state.withLock { state in
      if state.handler != nil { state.hasFired = true }
      return repeats ? state.handler : state.handler.take()
    }
    guard let handler else { return }
    handler(name, start.duration(to: engine.now))
    if repeats, state.withLock({ $0.handler != nil }) { arm() }
  }
}

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

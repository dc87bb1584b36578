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

/// The part of a watchdog that its pending job refers to.
private final class Alarm: Sendable {
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
  private let lease: KeyLease

  init(
    name: String,
    timeout: Duration,
    repeats: Bool,
    engine: QueueEngine,
    handler: @escaping @Sendable (String, Duration) -> Void
  ) {
    state = Locked(State(handler: handler))
    self.name = name
    // Repeating without any time in between would never end.
    self.timeout = repeats ? max(timeout, .milliseconds(1)) : timeout
    self.repeats = repeats
    start = engine.now
    lease = KeyLease(engine)
  }

  var hasFired: Bool { state.withLock { $0.hasFired } }

  func arm() {
    lease.enqueue(after: timeout) { [self] in fire() }
    // Whoever invalidated in between found nothing to cancel.
    if state.withLock({ $0.handler == nil }) { _ = lease.cancel() }
  }

  func invalidate() {
    let handler = state.withLock { $0.handler.take() }
    _ = lease.cancel()
    withExtendedLifetime(handler) {}
  }

  private func fire() {
    let handler = state.withLock { state in
      if state.handler != nil { state.hasFired = true }
      return repeats ? state.handler : state.handler.take()
    }
    guard let handler, let now = lease.engine?.now else { return }
    handler(name, start.duration(to: now))
    if repeats, state.withLock({ $0.handler != nil }) { arm() }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The part of a watchdog that its pending job refers to.
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

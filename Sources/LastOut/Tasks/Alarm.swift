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

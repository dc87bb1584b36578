// Settle
// SPDX-License-Identifier: Apache-2.0

/// A key of an engine that belongs to one owner and goes back when the owner is gone.
///
/// A pending job that refers to the lease keeps the key until it has run.
final class KeyLease: Sendable {
  let key: KeyIndex
  /// Not kept alive, since the engine's jobs refer to the lease.
  weak let engine: QueueEngine?

  init(_ engine: QueueEngine) {
    self.engine = engine
    key = engine.state.withLock { $0.leaseKey() }
  }

  deinit {
    engine?.state.withLock { $0.retireKey(key) }
  }

  /// Makes `task` the key's pending task, which keeps this lease.
  func enqueue(after delay: Duration, _ task: @escaping @Sendable () -> Void) {
    let job = Job { withExtendedLifetime(self) { task() } }
    engine?.enqueue(job, for: key, delay: delay)
  }

  func cancel() -> CancelOutcome {
    engine?.cancel(key) ?? .nothing
  }

  func flush() -> FlushOutcome {
    engine?.flush(key) ?? .nothing
  }
}

extension QueueEngine {
  /// Serves all delayed tasks, watchdogs and debounce functions of the program.
  static let shared = QueueEngine(policy: .standard, time: DriverThread()) { _, _ in }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

private import Glibc

/// A thread-safe queue in which only the last task of a key runs, when the key has been quiet.
///
/// Each change of a key replaces its pending task. The task runs on a concurrent pool once the
/// key's ``Policy`` says so; tasks of one key never overlap, and a slow or throwing task never
/// delays another key. Every method may be called from any thread, tasks included.
///
/// An idle queue has no timer and causes no wake-up. When the queue itself goes away, what is
/// pending is dropped without running; call ``executePendingTasks()`` first to run it. A task that
/// has started keeps the queue alive until it has ended.
public final class LastOutQueue: Sendable {
  private let engine: QueueEngine

  /// Creates a queue whose tasks may throw.
  ///
  /// - Parameters:
  ///   - policy: How keys settle that have no policy of their own; two seconds of quiet.
  ///   - onError: Receives the key and what its task threw, on the thread where the task ran.
  public convenience init(
    policy: Policy = .standard,
    onError: @escaping @Sendable (_ key: String, _ error: any Error) -> Void
  ) {
    self.init(policy: policy, time: DriverThread(), onError: onError)
  }

  /// Creates a queue that writes a line to standard error for each task that throws.
  ///
  /// - Parameter policy: How keys settle that have no policy of their own; two seconds of quiet.
  public convenience init(policy: Policy = .standard) {
    self.init(policy: policy, onError: Self.report)
  }

  package init(
    policy: Policy,
    time: any Timekeeper,
    onError: @escaping @Sendable (String, any Error) -> Void
  ) {
    engine = QueueEngine(policy: policy, time: time, onError: onError)
  }

  /// Sets how `key` settles, from its next change on.
  public func setPolicy(_ policy: Policy, forKey key: String) {
    engine.state.withLock { $0.core.setPolicy(policy, for: $0.names.intern(key)) }
  }

  // MARK: Changes

  /// Makes `task` the pending task of `key`; the one it replaces never runs and is freed at once.
  ///
  /// - Parameters:
  ///   - key: Whose change it is.
  ///   - delay: Overrides the policy's quiet period for this change; negative counts as zero.
  ///   - onStart: Called right before the task.
  ///   - task: Runs on a concurrent pool; or on the caller of ``flush(_:)`` or
  ///     ``executePendingTasks()``.
  public func enqueue(
    forKey key: String,
    delay: Duration? = nil,
    onStart: (@Sendable () -> Void)? = nil,
    task: @escaping @Sendable () throws -> Void
  ) {
    engine.enqueue(Job(onStart: onStart, task: task), forKey: key, delay: delay)
  }

  /// Drops the pending task of `key`, and what it captured, before returning.
  @discardableResult
  public func cancel(_ key: String) -> CancelOutcome {
    guard let index = find(key) else { return .nothing }
    return engine.cancel(index)
  }

  /// Drops all pending tasks; returns how many there were.
  @discardableResult
  public func cancelAll() -> Int {
    engine.cancelAll()
  }

  /// Runs the pending task of `key` on the caller and returns when it has run.
  ///
  /// If the key is running elsewhere, its pending task follows there instead.
  @discardableResult
  public func flush(_ key: String) -> FlushOutcome {
    guard let index = find(key) else { return .nothing }
    return engine.flush(index)
  }

  /// Runs what is pending now, once per key, on the caller; returns when those tasks have run.
  ///
  /// The pending task of a key that is running elsewhere follows there instead.
  public func executePendingTasks() {
    engine.flushAll()
  }

  // MARK: Questions

  /// How many keys have a pending task.
  public var pendingCount: Int {
    engine.state.withLock { $0.core.pendingCount }
  }

  /// The keys with a pending task, in no promised order.
  public var pendingKeys: [String] {
    engine.state.withLock { state in
      state.core.pendingKeys().map { state.names.name(of: $0) }
    }
  }

  /// Whether a task of `key` waits.
  public func isPending(_ key: String) -> Bool {
    engine.state.withLock { state in
      state.names.find(key).map { state.core.isPending($0) } ?? false
    }
  }

  /// Whether a task of `key` has started and not ended.
  public func isRunning(_ key: String) -> Bool {
    engine.state.withLock { state in
      state.names.find(key).map { state.core.isRunning($0) } ?? false
    }
  }

  private func find(_ key: String) -> KeyIndex? {
    engine.state.withLock { $0.names.find(key) }
  }

  private static func report(key: String, error: any Error) {
    let line = Array("LastOut: the task of key \"\(key)\" threw: \(error)\n".utf8)
    _ = unsafe write(STDERR_FILENO, line, line.count)
  }
}

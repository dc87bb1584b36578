// Settle
// SPDX-License-Identifier: Apache-2.0

/// One asynchronous task of a queue.
///
/// The queue owns the task; releasing this object has no effect.
public final class LastOutRun: Sendable {
  /// How a task ended.
  public enum Outcome: Sendable {
    /// The task returned.
    case completed
    /// The task threw.
    case failed(any Error)
    /// The task never ran: a newer one replaced it, or it was cancelled.
    case dropped
  }

  typealias Operation = @Sendable @isolated(any) () async throws -> Void

  private enum State: Sendable {
    case pending(Operation)
    case running(OwnedTask)
    case ended(Outcome)
  }

  private struct Storage: ~Copyable {
    var state: State
    var waiting: [CheckedContinuation<Outcome, Never>] = []
  }

  private let storage: Locked<Storage>

  init(_ operation: @escaping Operation) {
    storage = Locked(Storage(state: .pending(operation)))
  }

  /// How the task ended; suspends until then.
  public var outcome: Outcome {
    get async {
      await withCheckedContinuation { continuation in
        let outcome = storage.withLock { storage -> Outcome? in
          if case .ended(let outcome) = storage.state { return outcome }
          storage.waiting.append(continuation)
          return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    }
  }

  /// Drops the task if it has not started, or cancels it if it is running.
  public func cancel() {
    let state = storage.withLock { $0.state }
    switch state {
    case .pending: end(.dropped, unlessStarted: true)
    case .running(let task): task.cancel()
    case .ended: break
    }
  }

  /// Returns the task and marks it as running; `nil` if it was cancelled.
  func start(owned: OwnedTask) -> Operation? {
    storage.withLock { storage in
      guard case .pending(let operation) = storage.state else { return nil }
      storage.state = .running(owned)
      return operation
    }
  }

  func end(_ outcome: Outcome, unlessStarted: Bool = false) {
    let (waiting, former) = storage.withLock { storage in
      let former = storage.state
      switch former {
      case .ended: return ([CheckedContinuation<Outcome, Never>](), former)
      case .running where unlessStarted: return ([], former)
      case .pending, .running: break
      }
      storage.state = .ended(outcome)
      let waiting = storage.waiting
      storage.waiting = []
      return (waiting, former)
    }
    for continuation in waiting { continuation.resume(returning: outcome) }
    withExtendedLifetime(former) {}
  }
}

/// Reports a task as dropped when the queue releases it.
final class DropSentinel: Sendable {
  private let run: LastOutRun

  init(_ run: LastOutRun) {
    self.run = run
  }

  deinit { run.end(.dropped, unlessStarted: true) }
}

/// Continues the current run as a task: the run ends with the task.
enum AsyncRuns {
  static func detach(
    owned: OwnedTask = OwnedTask(),
    _ body: @escaping @Sendable () async -> Void
  ) {
    let end = RunMark.detach()
    end.engine.own(owned, for: end.key)
    let task = Task.detached {
      await AsyncRunMark.during(end.engine, body)
      end()
    }
    owned.own(task)
  }
}

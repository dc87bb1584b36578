// Settle
// SPDX-License-Identifier: Apache-2.0

/// Runs a value in one of three ways, and reports its start, its end and its error.
@usableFromInline
@frozen
struct RunReport<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline let onError: (@Sendable (Key, Value, any Error) -> Void)?
  @usableFromInline let log: (@Sendable (LastOutEvent<Key>) -> Void)?

  @inlinable
  init(
    onError: (@Sendable (Key, Value, any Error) -> Void)?,
    log: (@Sendable (LastOutEvent<Key>) -> Void)?
  ) {
    self.onError = onError
    self.log = log
  }

  @inlinable
  func started(_ key: Key) { log?(.started(key)) }

  /// Reports the end of a run; a cancellation is an error only to a caller that receives errors.
  @inlinable
  func ended(_ key: Key, _ value: Value, error: (any Error)? = nil) {
    if let error {
      if let onError {
        onError(key, value, error)
      } else if !(error is CancellationError) {
        Self.write(error, of: key)
      }
    }
    log?(.ended(key, error: error))
  }

  @usableFromInline
  static func write(_ error: any Error, of key: Key) {
    StandardError.write("the task of key \"\(key)\" threw: \(error)")
  }

  /// Continues the current run as an asynchronous task, which ends the run.
  @usableFromInline
  func runTask(
    _ value: Value,
    forKey key: Key,
    as handle: LastOutRun? = nil,
    isolation: (any Actor)?,
    carried: CarriedOperation? = nil,
    _ body: @escaping @Sendable () async throws -> Void
  ) {
    RunTasks.begin(handle, isolation: isolation, carried) {
      started(key)
      var failure: (any Error)?
      do { try await body() } catch { failure = error }
      ended(key, value, error: failure)
      handle?.end(.ending(failure, isCancelled: Task.isCancelled))
    }
  }

  /// Runs `body` on the main actor: at once on the main thread, or later.
  @usableFromInline
  func runOnMain(
    _ value: Value,
    forKey key: Key,
    as handle: LastOutRun? = nil,
    _ body: @escaping @Sendable @MainActor () throws -> Void
  ) {
    let rest: @Sendable () -> Void = {
      run(value, forKey: key, as: handle) { try MainActor.assumeIsolated { try body() } }
    }
    if Thread.isMain { rest() } else { RunTasks.beginOnMain(handle, rest) }
  }

  /// Runs `body` on the calling thread.
  @inlinable
  func run(_ value: Value, forKey key: Key, as handle: LastOutRun? = nil, _ body: () throws -> Void)
  {
    started(key)
    var failure: (any Error)?
    do { try body() } catch { failure = error }
    ended(key, value, error: failure)
    handle?.end(failure)
  }
}

extension RunReport where Value == LastOutTask {
  @usableFromInline
  func run(_ task: LastOutTask, forKey key: Key, _ carried: CarriedOperation) {
    let body = carried.operation
    runTask(task, forKey: key, as: task.run, isolation: body.isolation, carried: carried) {
      try await body()
    }
  }

  /// Runs the closure of a task.
  @inlinable
  func run(_ task: LastOutTask, forKey key: Key) {
    switch task.body {
    case .plain(let body): run(task, forKey: key, as: task.run, body)
    case .main(let body): runOnMain(task, forKey: key, as: task.run, body)
    case .asynchronous(let body):
      runTask(task, forKey: key, as: task.run, isolation: body.isolation) { try await body() }
    case .carried(let carried): run(task, forKey: key, carried)
    }
  }
}

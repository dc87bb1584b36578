// Settle
// SPDX-License-Identifier: Apache-2.0

/// A task that was made when its closure was enqueued, and starts with the closure's run.
///
/// A task copies the task-local values of its maker, and nothing else can. The carrier is the
/// task's executor, so it receives the task's first job and keeps it until the run.
@usableFromInline
final class TaskCarrier: TaskExecutor {
  @usableFromInline typealias Body = @Sendable () async -> Void

  private struct State: ~Copyable {
    /// The first job, until the task starts or is dropped.
    var job: UnownedJob?
    /// What the task does, once it has started.
    var body: Body?
    /// Where the jobs of the task run, once it has started.
    var executor: (any TaskExecutor)?
  }

  private let state = Lock(State())

  /// Whether there is a current task, which may have task-local values.
  @usableFromInline static var isNeeded: Bool {
    // A comparison with `nil` would copy the task.
    unsafe withUnsafeCurrentTask { task in if case .none = unsafe task { false } else { true } }
  }

  /// Makes a task that waits for ``start(on:_:)``.
  static func make(_ priority: TaskPriority?) -> (carrier: TaskCarrier, task: Task<Void, Never>) {
    let carrier = TaskCarrier()
    let task = Task(executorPreference: carrier, priority: priority) {
      let body = carrier.state.withLock { $0.body.take() }
      await body?()
    }
    return (carrier, task)
  }

  @usableFromInline
  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let executor = state.withLock { state in
      if state.executor == nil { state.job = job }
      return state.executor
    }
    executor?.enqueue(job)
  }

  /// Starts the task, whose jobs run on `executor`.
  func start(on executor: any TaskExecutor, _ body: @escaping Body) {
    let job = state.withLock { state in
      state.body = body
      state.executor = executor
      return state.job.take()
    }
    if let job { executor.enqueue(job) }
  }

  /// Ends a task that was not started.
  func drop() {
    guard let job = state.withLock({ $0.job.take() }) else { return }
    #if canImport(Darwin)
      // Older systems cannot run a job inside another.
      globalConcurrentExecutor.enqueue(job)
    #else
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    #endif
  }
}

/// An asynchronous closure with the task-local values of its enqueue.
@usableFromInline
final class CarriedOperation: Sendable {
  let operation: LastOutTask.Operation
  let carrier: TaskCarrier
  let task: Task<Void, Never>

  init(_ operation: @escaping LastOutTask.Operation, priority: TaskPriority?) {
    self.operation = operation
    (carrier, task) = TaskCarrier.make(priority)
  }

  deinit { carrier.drop() }
}

extension LastOutTask.Body {
  /// An asynchronous closure; it has the task-local values of the current task, if there is one.
  init(asynchronous operation: @escaping LastOutTask.Operation) {
    self =
      TaskCarrier.isNeeded
      ? .carried(CarriedOperation(operation, priority: nil)) : .asynchronous(operation)
  }
}

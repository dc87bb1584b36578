// Settle
// SPDX-License-Identifier: Apache-2.0

#if canImport(Dispatch)
  public import Dispatch
#endif

/// Where the tasks of a queue run.
///
/// A value that is due and waits for the executor is still pending: a newer one replaces it.
public struct LastOutExecutor: Sendable {
  @usableFromInline let place: TaskPlace

  /// Threads of the library, at the default priority.
  public static let threads = LastOutExecutor.threads()

  /// Threads of the library.
  ///
  /// Threads start on demand and end when they are idle. Queues share them.
  ///
  /// - Parameters:
  ///   - priority: The quality of service of the threads.
  ///   - limit: The maximum number of threads that the tasks of the queue occupy, and thereby the
  ///     number of tasks that can block before another key must wait; at least one.
  /// - Returns: An executor that shares its threads with others of the same priority.
  public static func threads(
    priority: TaskPriority = .medium,
    limit: Int = 64
  ) -> LastOutExecutor {
    LastOutExecutor(place: .threads(.shared(for: priority), limit: max(limit, 1)))
  }

  /// The main actor.
  public static let mainActor = LastOutExecutor(
    place: .elsewhere(
      ExecutorPlace(
        node: .main,
        tasks: MainExecutor(),
        isCurrent: { Thread.isMain },
        submit: { body in Task { @MainActor in body() } }
      )
    )
  )

  #if canImport(Dispatch)
    /// A Dispatch queue.
    public static func queue(_ queue: DispatchQueue) -> LastOutExecutor {
      let mark = QueueMark(queue)
      return LastOutExecutor(
        place: .elsewhere(
          ExecutorPlace(
            node: .executor(ObjectIdentifier(queue)),
            tasks: QueueExecutor(queue),
            isCurrent: { mark.isCurrent },
            submit: { body in queue.async(execute: body) }
          )
        )
      )
    }
  #endif

  /// A task executor.
  public static func executor(_ executor: any TaskExecutor) -> LastOutExecutor {
    LastOutExecutor(
      place: .elsewhere(
        ExecutorPlace(
          node: .executor(ObjectIdentifier(executor)),
          tasks: executor,
          isCurrent: {
            unsafe withUnsafeCurrentTask { task in
              unsafe task?.unownedTaskExecutor == executor.asUnownedTaskExecutor()
            }
          },
          submit: { body in Task(executorPreference: executor) { body() } }
        )
      )
    )
  }
}

/// Where the values of an engine run.
@usableFromInline
@frozen
package enum TaskPlace: Sendable {
  /// On the thread that finds them due or adds them; with an `exact` clock, none is ever late.
  case here(exact: Bool)
  /// On at most `limit` threads of the pool.
  case threads(ThreadPool, limit: Int)
  /// On an executor of the program.
  case elsewhere(ExecutorPlace)

  /// Makes the executor of the engine's asynchronous tasks.
  func makeTaskExecutor() -> any TaskExecutor {
    switch self {
    case .here: PoolExecutor(.standard, limit: 64)
    case .threads(let pool, let limit): PoolExecutor(pool, limit: limit)
    case .elsewhere(let executor): executor.tasks
    }
  }

  /// The priority of asynchronous tasks; `nil` for the default.
  var priority: TaskPriority? {
    if case .threads(let pool, _) = self { pool.priority } else { nil }
  }
}

/// An executor of the program.
@usableFromInline
package final class ExecutorPlace: Sendable {
  let node: WaitNode
  /// Runs asynchronous tasks.
  let tasks: any TaskExecutor
  /// Whether the calling thread belongs to the executor, and can run its values.
  @usableFromInline let isCurrent: @Sendable () -> Bool
  /// Runs a function on the executor, and returns at once.
  let submit: @Sendable (@escaping @Sendable () -> Void) -> Void

  init(
    node: WaitNode,
    tasks: any TaskExecutor,
    isCurrent: @escaping @Sendable () -> Bool,
    submit: @escaping @Sendable (@escaping @Sendable () -> Void) -> Void
  ) {
    self.node = node
    self.tasks = tasks
    self.isCurrent = isCurrent
    self.submit = submit
  }
}

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
    place: .elsewhere { body in Task { @MainActor in body() } }
  )

  #if canImport(Dispatch)
    /// A Dispatch queue.
    public static func queue(_ queue: DispatchQueue) -> LastOutExecutor {
      LastOutExecutor(place: .elsewhere { body in queue.async(execute: body) })
    }
  #endif

  /// A task executor.
  public static func executor(_ executor: any TaskExecutor) -> LastOutExecutor {
    LastOutExecutor(
      place: .elsewhere { body in Task(executorPreference: executor) { body() } }
    )
  }
}

/// Where the values of an engine run.
@usableFromInline
package enum TaskPlace: Sendable {
  /// On the thread that finds them due or adds them; with an `exact` clock, none is ever late.
  case here(exact: Bool)
  /// On at most `limit` threads of the pool.
  case threads(ThreadPool, limit: Int)
  /// On an executor, through a function that returns at once.
  case elsewhere(@Sendable (@escaping @Sendable () -> Void) -> Void)
}

// Settle
// SPDX-License-Identifier: Apache-2.0

#if canImport(Dispatch)
  public import Dispatch
#endif

/// Where the tasks of a queue run.
///
/// A value that is due and waits for its turn there is still pending: a newer one replaces it.
public struct LastOutExecutor: Sendable {
  @usableFromInline let place: TaskPlace

  /// Threads of the library's own, at the default priority.
  public static let threads = LastOutExecutor.threads()

  /// Threads of the library's own.
  ///
  /// Threads come when they are needed and go when they are idle; queues share them.
  ///
  /// - Parameters:
  ///   - priority: The quality of service of the threads.
  ///   - limit: How many threads the tasks of the queue occupy at most, and thereby how many tasks
  ///     may block before another key has to wait; at least one.
  /// - Returns: An executor that shares its threads with others of the same priority.
  public static func threads(
    priority: TaskPriority = .medium,
    limit: Int = 64
  ) -> LastOutExecutor {
    LastOutExecutor(place: .threads(.shared(for: priority), limit: max(limit, 1)))
  }

  /// The main actor, and with it the main queue of the program.
  public static let mainActor = LastOutExecutor(
    place: .elsewhere { body in Task { @MainActor in body() } }
  )

  #if canImport(Dispatch)
    /// A Dispatch queue.
    public static func queue(_ queue: DispatchQueue) -> LastOutExecutor {
      LastOutExecutor(place: .elsewhere { body in queue.async(execute: body) })
    }
  #endif

  /// An executor of tasks.
  public static func executor(_ executor: any TaskExecutor) -> LastOutExecutor {
    LastOutExecutor(
      place: .elsewhere { body in Task(executorPreference: executor) { body() } }
    )
  }
}

/// Where the values of an engine run.
@usableFromInline
package enum TaskPlace: Sendable {
  /// On the thread that finds them due, or that adds them; under a clock that is `exact`, none is
  /// ever late.
  case here(exact: Bool)
  /// On threads of the pool, of which the engine occupies so many at most.
  case threads(ThreadPool, limit: Int)
  /// Where a function puts them that returns at once.
  case elsewhere(@Sendable (@escaping @Sendable () -> Void) -> Void)
}

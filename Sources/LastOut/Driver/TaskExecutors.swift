// Settle
// SPDX-License-Identifier: Apache-2.0

#if canImport(Dispatch)
  internal import Dispatch
#endif

/// Runs asynchronous tasks on threads of a pool.
final class PoolExecutor: TaskExecutor, PoolWork {
  private struct State: ~Copyable {
    /// The jobs that wait for a thread.
    var jobs = Deque<UnownedJob>()
    /// The number of threads that run jobs or are about to.
    var busy = 0

    /// Counts one more thread, unless there are enough.
    mutating func claimThread(_ limit: Int) -> Bool {
      guard busy < limit else { return false }
      busy += 1
      return true
    }

    mutating func next() -> UnownedJob? {
      guard let job = jobs.popFirst() else {
        busy -= 1
        return nil
      }
      return job
    }
  }

  /// The executor that the calling thread belongs to.
  private static let current = ThreadValue<PoolExecutor>()

  private let pool: ThreadPool
  private let limit: Int
  private let state = Locked(State())

  init(_ pool: ThreadPool, limit: Int) {
    self.pool = pool
    self.limit = limit
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let needsThread = state.withLock { state in
      state.jobs.append(job)
      return state.claimThread(limit)
    }
    if needsThread { pool.submit(self) }
  }

  func work() {
    Self.current.withValue(self) {
      while let job = state.withLock({ $0.next() }) {
        unsafe job.runSynchronously(on: asUnownedTaskExecutor())
      }
    }
  }

  /// Calls `body`, which blocks the thread; a thread of an executor is replaced meanwhile.
  static func blocking(_ body: () -> Void) {
    guard let executor = current.value else { return body() }
    let needsThread = executor.state.withLock { state in
      state.busy -= 1
      return !state.jobs.isEmpty && state.claimThread(executor.limit)
    }
    if needsThread { executor.pool.submit(executor) }
    body()
    executor.state.withLock { $0.busy += 1 }
  }
}

/// Runs asynchronous tasks on the main thread.
final class MainExecutor: TaskExecutor {
  func enqueue(_ job: consuming ExecutorJob) {
    MainActor.shared.enqueue(UnownedJob(job))
  }
}

#if canImport(Dispatch)
  /// Marks a Dispatch queue, to recognize its threads.
  struct QueueMark: Sendable {
    static let main = QueueMark(.main)

    private let key = DispatchSpecificKey<Bool>()

    init(_ queue: DispatchQueue) {
      queue.setSpecific(key: key, value: true)
    }

    /// Whether the calling thread runs a block of the queue.
    var isCurrent: Bool { DispatchQueue.getSpecific(key: key) ?? false }
  }

  /// Runs asynchronous tasks on a Dispatch queue.
  final class QueueExecutor: TaskExecutor {
    private let queue: DispatchQueue

    init(_ queue: DispatchQueue) {
      self.queue = queue
    }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      queue.async { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
    }
  }
#endif

// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut

/// A fixed number of threads for tasks that block.
final class BlockingExecutor: TaskExecutor {
  static let shared = BlockingExecutor(threads: 8)

  private struct Work {
    var jobs: [UnownedJob] = []
    var idle: [Int]
  }

  /// Each has a thread while it works.
  private let queues: [DispatchQueue]
  /// A lock that the thread sanitizer knows.
  private let work: Locked<Work>

  init(threads: Int) {
    queues = (0..<threads).map { DispatchQueue(label: "blocking test \($0)") }
    work = Locked(Work(idle: Array(0..<threads)))
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    let idle = work.withLock { work in
      work.jobs.append(job)
      return work.idle.popLast()
    }
    if let idle { queues[idle].async { self.run(on: idle) } }
  }

  private func run(on queue: Int) {
    while let job = next(for: queue) {
      unsafe job.runSynchronously(on: asUnownedTaskExecutor())
    }
  }

  /// The job that has waited longest; without one the queue is idle.
  private func next(for queue: Int) -> UnownedJob? {
    work.withLock { work in
      guard work.jobs.isEmpty else { return work.jobs.removeFirst() }
      work.idle.append(queue)
      return nil
    }
  }
}

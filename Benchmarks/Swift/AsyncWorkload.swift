// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import LastOut
import Synchronization

/// Asynchronous tasks of a queue, and the usual debounce without one: a task that sleeps, cancelled
/// by the next change of its key.
enum AsyncWorkload {
  private static let runs = Atomic(0)
  private static let quiet = Duration.milliseconds(200)

  static var runCount: Int { runs.load(ordering: .relaxed) }

  static func queue(names: [String], bursts: Int) {
    let queue = LastOutQueue(policy: Policy(delay: quiet))
    for _ in 0..<bursts {
      for _ in 0..<CoreWorkload.changesPerBurst {
        for name in names {
          queue.enqueue(forKey: name) {
            await Task.yield()
            runs.add(1, ordering: .relaxed)
          }
        }
      }
      wait { await queue.drain() }
    }
  }

  static func sleep(names: [String], bursts: Int) {
    var tasks: [String: Task<Void, Never>] = [:]
    for _ in 0..<bursts {
      for _ in 0..<CoreWorkload.changesPerBurst {
        for name in names {
          tasks[name]?.cancel()
          tasks[name] = Task.detached {
            guard (try? await Task.sleep(for: quiet)) != nil else { return }
            await Task.yield()
            runs.add(1, ordering: .relaxed)
          }
        }
      }
      let last = Array(tasks.values)
      wait { for task in last { await task.value } }
    }
  }

  private static func wait(for body: @escaping @Sendable () async -> Void) {
    let done = DispatchSemaphore(value: 0)
    Task.detached {
      await body()
      done.signal()
    }
    done.wait()
  }
}

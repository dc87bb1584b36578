// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import LastOut
import Synchronization

/// The thread-safe queue, and the core with the same closures as a queue's tasks.
///
/// Both change each key ten times and then run its last task on the caller.
enum QueueWorkload {
  typealias Task = @Sendable () -> Void

  /// The tasks write to this, so that the compiler does not remove them.
  private static let lastValue = Atomic(0)
  private static let runs = Atomic(0)

  static var runCount: Int { runs.load(ordering: .relaxed) }

  private static func task(_ value: Int) -> Task {
    {
      lastValue.store(value, ordering: .relaxed)
      runs.add(1, ordering: .relaxed)
    }
  }

  static func queue(names: [String], bursts: Int) {
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3600)))
    for burst in 0..<bursts {
      for round in 0..<CoreWorkload.changesPerBurst {
        for name in names { queue.enqueue(forKey: name, task: task(burst &* round)) }
      }
      queue.executePendingTasks()
    }
  }

  static func core(names: [String], bursts: Int) {
    var table = KeyTable(capacity: names.count)
    var core = LastOutCore<Task>(policy: Policy(delay: .seconds(3600)), capacity: names.count)
    var now = Moment(nanoseconds: 1)
    for burst in 0..<bursts {
      for round in 0..<CoreWorkload.changesPerBurst {
        for name in names {
          core.enqueue(task(burst &* round), for: table.intern(name), at: now)
        }
        now.nanoseconds += 1000
      }
      now = now.advanced(by: .seconds(3600))
      while let run = core.nextRun(at: now) {
        run.value()
        core.finish(run.key, at: now)
      }
    }
  }

  /// Runs every key once, and then measures the cost of the idle queue for `seconds`.
  static func idle(names: [String], seconds: UInt32) -> (wakeUps: Int, cpu: UInt64) {
    // Long enough that all run on the caller: the pool's threads take seconds to end.
    let queue = LastOutQueue(policy: Policy(delay: .seconds(3)))
    for name in names { queue.enqueue(forKey: name, task: task(1)) }
    queue.executePendingTasks()
    // The driver's last deadline passes.
    sleep(4)
    return withExtendedLifetime(queue) {
      let wakeUps = Meter.wakeUpsBesideMain
      let cpu = Meter.cpuBesideMain
      sleep(seconds)
      return (Meter.wakeUpsBesideMain - wakeUps, Meter.cpuBesideMain - cpu)
    }
  }
}

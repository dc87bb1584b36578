// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Synchronization

/// The thread-safe queue of values, and the core with the same values.
///
/// Both change each key ten times and then handle its last value on the caller.
enum ValueWorkload {
  /// The handlers write to this, so that the compiler does not remove them.
  private static let lastValue = Atomic(0)
  private static let runs = Atomic(0)

  static var runCount: Int { runs.load(ordering: .relaxed) }

  @Sendable
  private static func handle(_ value: Int) {
    lastValue.store(value, ordering: .relaxed)
    runs.add(1, ordering: .relaxed)
  }

  static func queue(names: [String], bursts: Int) {
    let queue = LastOutValueQueue<String, Int>(policy: Policy(delay: .seconds(3600))) {
      _,
      value,
      _ in
      handle(value)
    }
    for burst in 0..<bursts {
      for round in 0..<CoreWorkload.changesPerBurst {
        for name in names { queue.enqueue(burst &* round, forKey: name) }
      }
      queue.flushAll()
    }
  }

  static func core(names: [String], bursts: Int) {
    var table = KeyTable(capacity: names.count)
    var core = LastOutCore<Int>(policy: Policy(delay: .seconds(3600)), capacity: names.count)
    var now = Moment(nanoseconds: 1)
    for burst in 0..<bursts {
      for round in 0..<CoreWorkload.changesPerBurst {
        for name in names { core.enqueue(burst &* round, for: table.intern(name), at: now) }
        now.nanoseconds += 1000
      }
      now = now.advanced(by: .seconds(3600))
      while let run = core.nextRun(at: now) {
        handle(run.value)
        core.finish(run.key, at: now)
      }
    }
  }
}

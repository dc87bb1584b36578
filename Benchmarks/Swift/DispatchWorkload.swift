// Settle
// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Synchronization

/// The approach with a timer per key: one `DispatchSource` timer, set again by every change.
enum DispatchWorkload {
  private static let runs = Atomic(0)

  static var runCount: Int { runs.load(ordering: .relaxed) }

  /// Changes each key ten times in each burst and waits until all have run.
  ///
  /// `delay` must be longer than a burst, or keys run more than once.
  static func burst(keys: Int, bursts: Int, delay: DispatchTimeInterval, order: [Int32]) {
    let queue = DispatchQueue(label: "keys")
    let left = DispatchSemaphore(value: 0)
    let values = Mutex([Int](repeating: 0, count: keys))
    let timers = (0..<keys).map { key in
      let timer = DispatchSource.makeTimerSource(queue: queue)
      timer.setEventHandler {
        _ = values.withLock { $0[key] }
        if runs.add(1, ordering: .relaxed).newValue % keys == 0 { left.signal() }
      }
      timer.schedule(deadline: .distantFuture)
      timer.resume()
      return timer
    }
    for _ in 0..<bursts {
      for round in 0..<CoreWorkload.changesPerBurst {
        for key in order {
          values.withLock { $0[Int(key)] = round }
          timers[Int(key)].schedule(deadline: .now() + delay, leeway: .nanoseconds(0))
        }
      }
      _ = left.wait(timeout: .now() + .seconds(60))
    }
    for timer in timers { timer.cancel() }
  }
}

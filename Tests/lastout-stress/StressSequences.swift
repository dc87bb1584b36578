// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

/// Sequences that settle, one after the other: each must deliver its last element.
struct StressSequences {
  let report: Report

  func run(until end: ContinuousClock.Instant) async {
    let policy = Policy(delay: .microseconds(200), maxWait: .milliseconds(1))
    while ContinuousClock.now < end {
      let (changes, source) = AsyncStream.makeStream(of: Int.self)
      let producer = Task {
        for value in 1...200 {
          source.yield(value)
          if value % 20 == 0 { try? await Task.sleep(for: .microseconds(300)) }
        }
        source.finish()
      }
      var newest: [Int: Int] = [:]
      for await value in changes.settled(by: policy, keyedBy: { $0 % 3 }) {
        if value <= newest[value % 3] ?? 0 { report.fail("a sequence went back to \(value)") }
        newest[value % 3] = value
      }
      if newest != [0: 198, 1: 199, 2: 200] { report.fail("a sequence lost its end: \(newest)") }
      // Tasks with task-local values: each replaces one that was never started.
      let runs = (0..<10).map { _ in
        StressThread.queue.enqueue(forKey: "task") { [report] in report.ran() }
      }
      for number in 0..<10 {
        StressThread.queue.enqueue(forKey: "carried") { [report] in
          await Task.yield()
          if number == 9 { report.ran() }
        }
      }
      runs.last?.cancel()
      for run in runs { _ = await run.outcome }
      report.count(220)
      await producer.value
    }
  }
}

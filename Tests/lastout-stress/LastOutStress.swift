// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut

#if canImport(Darwin)
  import Darwin
#elseif canImport(Glibc)
  import Glibc
#elseif canImport(Musl)
  import Musl
#endif

/// `lastout-stress SECONDS`: eight threads use everything the library has at once, for a sanitizer
/// to watch, and check what every caller may rely on.
@main
enum LastOutStress {
  static func main() async {
    let seconds = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 10
    let end = ContinuousClock.now + .seconds(seconds)
    let report = Report()
    // Threads of the system's own, so that the pool of Swift's tasks stays free.
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          await OwnThread.run { StressThread(number: number, report: report).run(until: end) }
        }
      }
      group.addTask { await StressSequences(report: report).run(until: end) }
    }
    await StressThread.queue.drain()
    await StressThread.values.drain()
    let left = StressThread.queue.pendingCount + StressThread.values.pendingCount
    if left > 0 { report.fail("\(left) values are pending after drain()") }
    print("\(seconds) s: \(report.operations) operations, \(report.runs) runs")
    if report.failures > 0 { exit(1) }
  }
}

/// Runs a function on a thread of its own.
enum OwnThread {
  static func run(_ body: @escaping @Sendable () -> Void) async {
    await withCheckedContinuation { continuation in
      let queue = LastOutQueue(policy: Policy(delay: .zero), executor: .threads(limit: 1))
      queue.enqueue(forKey: "thread") {
        body()
        withExtendedLifetime(queue) { continuation.resume() }
      }
    }
  }
}

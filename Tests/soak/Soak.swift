// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import Glibc
import Synchronization

/// Runs the simulation until stopped, for one seed, or for a number of seeds.
///
/// `soak` runs forever, `soak SEED` replays one seed and prints all its events, `soak FIRST COUNT` runs
/// COUNT seeds. A violated rule is reported with the seed and the last events; the exit status is then
/// 1. A trap in the machine also reports its seed before it ends the process.
@main struct Soak {
  /// The number of steps of one run, before it becomes idle.
  static let steps = 1000
  /// The current seed, for the trap message.
  static let seed = Atomic<UInt64>(0)

  static func main() {
    let numbers = CommandLine.arguments.dropFirst().compactMap { UInt64($0) }
    guard numbers.count == CommandLine.arguments.count - 1, numbers.count <= 2 else {
      say("usage: soak [SEED [COUNT]]")
      exit(64)
    }
    for number in [SIGILL, SIGTRAP] { signal(number, reportTrap) }
    let first = numbers.first ?? 1
    if numbers.count == 1 { exit(replay(first) ? 0 : 1) }
    exit(live(from: first, count: numbers.count == 2 ? numbers[1] : .max) ? 0 : 1)
  }

  /// Runs one seed and prints all its events.
  private static func replay(_ seed: UInt64) -> Bool {
    Self.seed.store(seed, ordering: .relaxed)
    let report = LifeReport(seed: seed, steps: steps) { say($0) }
    say(report.breach ?? "\(report.steps) steps, no invariant violated")
    return report.breach == nil
  }

  private static func live(from first: UInt64, count: UInt64) -> Bool {
    var seen = Coverage()
    var steps = 0
    var lived: UInt64 = 0
    let start = ContinuousClock.now
    var reported = start
    while lived < count {
      let seed = first &+ lived
      Self.seed.store(seed, ordering: .relaxed)
      let report = LifeReport(seed: seed, steps: Self.steps)
      if let words = report.breach {
        say(words)
        return false
      }
      lived += 1
      steps += report.steps
      seen.add(report.seen)
      if ContinuousClock.now - reported > .seconds(5) {
        reported = ContinuousClock.now
        say("\(progress(lived, steps, reported - start)), now at seed \(seed)")
      }
    }
    say("\(progress(lived, steps, ContinuousClock.now - start)): \(seen)")
    return true
  }

  private static func progress(_ lived: UInt64, _ steps: Int, _ time: Duration) -> String {
    "\(lived) runs, \(steps) steps, no invariant violated, in \(time.components.seconds) s"
  }

  /// Writes one line at once, so that progress shows in a pipe too.
  private static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    var rest = bytes[...]
    while !rest.isEmpty {
      let written = unsafe rest.withUnsafeBytes { unsafe write(1, $0.baseAddress, $0.count) }
      guard written > 0 else { return }
      rest = rest.dropFirst(written)
    }
  }
}

/// Reports the seed of a trap in the machine, then lets the trap end the process.
private func reportTrap(_ number: Int32) {
  signal(number, SIG_DFL)
  let words = "The simulation trapped. Replay it with: make soak SEED="
  let line = "\(words)\(Soak.seed.load(ordering: .relaxed))\n"
  var copy = line
  _ = copy.withUTF8 { unsafe write(1, $0.baseAddress, $0.count) }
}

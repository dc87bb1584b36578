// Settle
// SPDX-License-Identifier: Apache-2.0

import ClusterSimulation
import FaultSimulation
import Glibc
import Synchronization

/// Runs the simulation until stopped, for one seed, or for a number of seeds.
///
/// `soak` runs forever, `soak SEED` replays one seed and prints all its events, `soak FIRST COUNT`
/// runs COUNT seeds; `cluster` before the numbers runs several gateways as one, `household` the
/// lives in households alone, which must hold the clauses that follow it, or `all`. A violated rule
/// is reported with the seed and the last events; the exit status is then 1. A trap in the machine
/// also reports its seed before it ends the process.
@main struct Soak {
  /// The number of steps of one run, before it becomes idle.
  static let steps = 1000
  static let clusterSteps = 5000
  /// The current seed, for the trap message.
  static let seed = Atomic<UInt64>(0)

  static func main() {
    var arguments = CommandLine.arguments.dropFirst()
    let kind = arguments.first.flatMap { UInt64($0) == nil ? $0 : nil }
    if kind != nil { arguments.removeFirst() }
    var clauses = Clauses.all
    while kind == "household", let name = arguments.first, UInt64(name) == nil {
      guard let named = Clauses(named: name) else { usage() }
      clauses = named
      arguments.removeFirst()
    }
    let numbers = arguments.compactMap { UInt64($0) }
    guard numbers.count == arguments.count, numbers.count <= 2 else { usage() }
    for number in [SIGILL, SIGTRAP] { signal(number, reportTrap) }
    let isGood =
      switch kind {
      case nil: run(numbers) { LifeReport(seed: $0, steps: steps, listener: $1) }
      case "cluster": run(numbers) { ClusterReport(seed: $0, steps: clusterSteps, listener: $1) }
      case "household":
        run(numbers) {
          HouseholdReport(seed: $0, steps: steps, clauses: clauses, listener: $1)
        }
      default: usage()
      }
    exit(isGood ? 0 : 1)
  }

  private static func usage() -> Never {
    say("usage: soak [cluster | household [CLAUSE,...]] [SEED [COUNT]]")
    exit(64)
  }

  private static func run<Report: SoakReport>(
    _ numbers: [UInt64],
    _ report: (UInt64, ((String) -> Void)?) -> Report
  ) -> Bool {
    let first = numbers.first ?? 1
    if numbers.count == 1 { return replay(first, report) }
    return live(from: first, count: numbers.count == 2 ? numbers[1] : .max, report)
  }

  /// Runs one seed and prints all its events.
  private static func replay<Report: SoakReport>(
    _ seed: UInt64,
    _ report: (UInt64, ((String) -> Void)?) -> Report
  ) -> Bool {
    Self.seed.store(seed, ordering: .relaxed)
    let report = report(seed) { say($0) }
    say(report.breach ?? "\(report.steps) steps, no invariant violated")
    return report.breach == nil
  }

  private static func live<Report: SoakReport>(
    from first: UInt64,
    count: UInt64,
    _ report: (UInt64, ((String) -> Void)?) -> Report
  ) -> Bool {
    var seen = Report.Seen()
    var steps = 0
    var lived: UInt64 = 0
    let start = ContinuousClock.now
    var reported = start
    while lived < count {
      let seed = first &+ lived
      Self.seed.store(seed, ordering: .relaxed)
      let report = report(seed, nil)
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

/// What a simulation tells of one seed.
private protocol SoakReport {
  associatedtype Seen: SoakCoverage
  /// The violated rule with the last events; `nil` if no rule was violated.
  var breach: String? { get }
  var steps: Int { get }
  var seen: Seen { get }
}

/// How often each thing happened in a simulation.
private protocol SoakCoverage {
  init()
  mutating func add(_ other: Self)
}

extension LifeCoverage: SoakCoverage {}
extension LifeReport: SoakReport {}
extension HouseholdCoverage: SoakCoverage {}
extension HouseholdReport: SoakReport {}
extension ClusterCoverage: SoakCoverage {}
extension ClusterReport: SoakReport {}

/// Reports the seed of a trap in the machine, then lets the trap end the process.
private func reportTrap(_ number: Int32) {
  signal(number, SIG_DFL)
  let words = "The simulation trapped. Replay it with: make soak SEED="
  let line = "\(words)\(Soak.seed.load(ordering: .relaxed))\n"
  var copy = line
  _ = copy.withUTF8 { unsafe write(1, $0.baseAddress, $0.count) }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import Glibc

/// Lives simulated lives until stopped, or one of them, or so many.
///
/// `soak` goes on for ever, `soak SEED` lives one life and tells its end, `soak FIRST COUNT` lives
/// so many. A broken rule is told with the seed and the last happenings; the exit status is 1 then.
@main struct Soak {
  /// Steps of one life, before it comes to rest.
  static let steps = 1000

  static func main() {
    let numbers = CommandLine.arguments.dropFirst().compactMap { UInt64($0) }
    guard numbers.count == CommandLine.arguments.count - 1, numbers.count <= 2 else {
      say("usage: soak [SEED [COUNT]]")
      exit(64)
    }
    let first = numbers.first ?? 1
    let count = numbers.count == 2 ? numbers[1] : numbers.isEmpty ? .max : 1
    exit(live(from: first, count: count) ? 0 : 1)
  }

  /// Writes one line at once, so that progress shows in a pipe too.
  private static func say(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    var span = bytes[...]
    while !span.isEmpty {
      let written = unsafe span.withUnsafeBytes { unsafe write(1, $0.baseAddress, $0.count) }
      guard written > 0 else { return }
      span = span.dropFirst(written)
    }
  }

  private static func live(from first: UInt64, count: UInt64) -> Bool {
    var seen = Sightings()
    var steps = 0
    var lived: UInt64 = 0
    let start = ContinuousClock.now
    var told = start
    while lived < count {
      let seed = first &+ lived
      let report = LifeReport(seed: seed, steps: Self.steps)
      if let words = report.breach {
        say(words)
        return false
      }
      lived += 1
      steps += report.steps
      seen.add(report.seen)
      if ContinuousClock.now - told > .seconds(1) {
        told = ContinuousClock.now
        say("seed \(seed): \(lived) lives, \(steps) steps in \(told - start), no rule broken")
      }
    }
    say("\(lived) lives, \(steps) steps in \(ContinuousClock.now - start), no rule broken")
    say("\(seen)")
    return true
  }
}

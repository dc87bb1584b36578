// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import FoundationEssentials
import LastOutTesting
import Testing

/// Lives that a debug build can live in some seconds; `make soak` lives more of them.
///
/// `make mutants` checks that the simulation finds mistakes.
@Suite struct FaultSimulationTests {
  /// A failing seed names itself, reports its last events and replays exactly.
  @Test(arguments: 0..<8)
  func `no life among faults breaks a rule`(part: UInt64) {
    for seed in part * 25..<(part + 1) * 25 {
      let report = LifeReport(seed: seed, steps: 300)
      #expect(report.breach == nil, "\(report.breach ?? "")")
    }
  }

  @Test(arguments: [false, true])
  func `the same seed lives the same life`(isJournalled: Bool) {
    var first = SimulatedLife(seed: 7, isJournalled: isJournalled, isTraced: true)
    var second = SimulatedLife(seed: 7, isJournalled: isJournalled, isTraced: true)
    first.live(steps: 400)
    second.live(steps: 400)
    let traces = (first.trace, second.trace)
    #expect(!traces.0.isEmpty)
    #expect(traces.0 == traces.1)
    let steps = (first.steps, second.steps)
    #expect(steps.0 == steps.1)
  }

  @Test func `every kind of trouble is met`() {
    var seen = Coverage()
    for seed: UInt64 in 0..<60 { seen.add(LifeReport(seed: seed, steps: 300).seen) }
    let counts = [
      seen.changes, seen.refusedChanges, seen.publishes, seen.repetitions, seen.cuts,
      seen.restarts, seen.shutdowns, seen.pauses, seen.confirmed, seen.failed, seen.expired,
      seen.cancelled, seen.unchanged, seen.superseded, seen.byHand, seen.replayed, seen.powerCuts,
      seen.sleeps, seen.diskFaults, seen.unkept, seen.expiredAtStart, seen.withheld,
      seen.reloads, seen.finishedReloads, seen.routed, seen.forwarded, seen.passed,
      seen.urgent, seen.lostRoutes, seen.states, seen.clearedStates, seen.clearedAfterReconnect,
      seen.brokerLosses, seen.lateOpenings, seen.relatedChanges, seen.resumedLate,
    ]
    #expect(counts.allSatisfy { $0 > 0 }, "\(seen)")
  }

  @Test func `the numbers of a seed are the same on every machine`() {
    var generator = SeededGenerator(life: 1)
    let numbers = (0..<4).map { _ in generator.below(1000) }
    #expect(numbers == [710, 784, 271, 630])
  }

  /// In a process of its own: others would be measured with it.
  @Test func `a long run uses no more memory than a short one`() async {
    await #expect(processExitsWith: .success) {
      for isJournalled in [false, true] {
        var life = SimulatedLife(seed: 11, isJournalled: isJournalled)
        life.live(steps: 6000)
        let before = try Self.residentPages()
        life.live(steps: 12_000)
        let breach = life.breach
        #expect(breach == nil, "\(breach ?? "")")
        #expect(try Self.residentPages() - before < 512, "pages of resident memory")
      }
    }
  }

  private static func residentPages() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return try #require(Int(text.split(separator: " ")[1]))
  }
}

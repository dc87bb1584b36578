// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import FoundationEssentials
import LastOutTesting
import Testing

/// Lives that a debug build can live in some seconds; `make soak` lives a thousand, these among
/// them.
///
/// `make mutants` checks that the simulation finds mistakes.
@Suite struct FaultSimulationTests {
  /// A failing seed names itself, reports its last events and replays exactly.
  @Test func `no life among faults breaks a rule, and every kind of trouble is met`() {
    var seen = LifeCoverage()
    for seed: UInt64 in 0..<60 {
      let report = LifeReport(seed: seed, steps: 300)
      #expect(report.breach == nil, "\(report.breach ?? "")")
      seen.add(report.seen)
    }
    #expect(seen.prompt.missing.isEmpty, "\(seen)")
  }

  /// A value in its quiet period rides in the message of another property, whose turn it is.
  @Test func `a life whose lanes were once told in the wrong order breaks no rule`() {
    #expect(LifeReport(seed: 462, steps: 1000).breach == nil)
  }

  @Test(arguments: [false, true])
  func `the same seed lives the same life`(isJournalled: Bool) {
    let first = SimulatedLife(seed: 7, isJournalled: isJournalled, isTraced: true)
    let second = SimulatedLife(seed: 7, isJournalled: isJournalled, isTraced: true)
    first.live(steps: 400)
    second.live(steps: 400)
    let traces = (first.trace, second.trace)
    #expect(!traces.0.isEmpty)
    #expect(traces.0 == traces.1)
    let steps = (first.steps, second.steps)
    #expect(steps.0 == steps.1)
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
        let life = SimulatedLife(seed: 11, isJournalled: isJournalled)
        life.live(steps: 2000)
        let before = try Self.residentPages()
        life.live(steps: 4000)
        let breach = life.breach
        #expect(breach == nil, "\(breach ?? "")")
        #expect(try Self.residentPages() - before < 170, "pages of resident memory")
      }
    }
  }

  private static func residentPages() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return try #require(Int(text.split(separator: " ")[1]))
  }
}

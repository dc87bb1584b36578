// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import FoundationEssentials
import LastOut
import Testing

/// A million steps run in a release build, see `make soak`; these are what a debug build can do in
/// some seconds.
@Suite struct FaultSimulationTests {
  /// A failing seed names itself, tells its last happenings and can be lived again.
  @Test(arguments: 0..<8)
  func `no life among faults breaks a rule`(part: UInt64) {
    for seed in part * 25..<(part + 1) * 25 {
      let report = LifeReport(seed: seed, steps: 300)
      #expect(report.breach == nil, "\(report.breach ?? "")")
    }
  }

  @Test func `the same seed lives the same life`() {
    var first = SimulatedLife(seed: 7, isTraced: true)
    var second = SimulatedLife(seed: 7, isTraced: true)
    first.live(steps: 400)
    second.live(steps: 400)
    #expect(!first.trace.isEmpty)
    #expect(first.trace == second.trace)
    #expect(first.steps == second.steps)
  }

  @Test func `every kind of trouble is met`() {
    var seen = Sightings()
    for seed: UInt64 in 0..<40 { seen.add(LifeReport(seed: seed, steps: 300).seen) }
    let counts = [
      seen.changes, seen.refusedChanges, seen.publishes, seen.repetitions, seen.cuts,
      seen.restarts, seen.shutdowns, seen.pauses, seen.confirmed, seen.failed, seen.expired,
      seen.cancelled, seen.unchanged, seen.superseded, seen.byHand, seen.replayed,
    ]
    #expect(counts.allSatisfy { $0 > 0 }, "\(seen)")
  }

  @Test func `the numbers of a seed are the same on every machine`() {
    var generator = SeededGenerator(seed: 1)
    let numbers = (0..<4).map { _ in generator.below(1000) }
    #expect(numbers == [710, 784, 271, 630])
  }

  @Test func `a memory that forgets one value is found`() {
    let broken = (0..<60 as Range<UInt64>).contains { seed in
      var life = SimulatedLife(seed: seed, memory: Absentminded())
      life.live(steps: 400)
      return life.breach?.contains("the memory kept") ?? false
    }
    #expect(broken)
  }

  @Test func `a long life takes no more memory than a short one`() throws {
    var life = SimulatedLife(seed: 11)
    life.live(steps: 6000)
    let before = try Self.residentPages()
    life.live(steps: 12_000)
    #expect(life.breach == nil, "\(life.breach ?? "")")
    #expect(try Self.residentPages() - before < 512, "pages of resident memory")
  }

  private static func residentPages() throws -> Int {
    let text = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8)
    return try #require(Int(text.split(separator: " ")[1]))
  }
}

/// Loses every fifth value.
private struct Absentminded: RestartMemory {
  private var whole = Faithful()
  private var count = 0

  var keepsAll: Bool { true }

  mutating func accepted(_ survivor: Survivor) {
    count += 1
    if !count.isMultiple(of: 5) { whole.accepted(survivor) }
  }

  mutating func ended(_ number: UInt64, of key: KeyIndex) { whole.ended(number, of: key) }

  mutating func takeSurvivors(at now: Moment) -> [Survivor] { whole.takeSurvivors(at: now) }
}

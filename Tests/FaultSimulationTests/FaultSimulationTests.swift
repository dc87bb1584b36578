// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
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

  @Test(arguments: [Forgetful(), Journalled(seed: 7)] as [any RestartMemory])
  func `the same seed lives the same life`(memory: any RestartMemory) {
    var first = SimulatedLife(seed: 7, memory: memory, isTraced: true)
    var second = SimulatedLife(seed: 7, memory: memory, isTraced: true)
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
      seen.cancelled, seen.unchanged, seen.superseded, seen.byHand, seen.replayed, seen.powerCuts,
      seen.sleeps, seen.diskTroubles, seen.unkept, seen.expiredAtStart, seen.withheld,
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
      return life.breach?.contains("a crash would lose") ?? false
    }
    #expect(broken)
  }

  /// The seeds are among the thousand that continuous integration lives, whose lives are longer.
  @Test(arguments: JournalFlaw.allCases)
  func `a mistake about the journal is found`(flaw: JournalFlaw) {
    let seed = (1...500 as ClosedRange<UInt64>).first { number in
      var life = SimulatedLife(
        seed: 2 * number,
        memory: Journalled(seed: 2 * number, flaw: flaw)
      )
      life.live(steps: 1000)
      return life.breach != nil
    }
    #expect(seed != nil, "\(flaw) was not found")
  }

  /// In a process of its own: others would be measured with it.
  @Test func `a long life takes no more memory than a short one`() async {
    await #expect(processExitsWith: .success) {
      for memory in [Forgetful(), Journalled(seed: 11)] as [any RestartMemory] {
        var life = SimulatedLife(seed: 11, memory: memory)
        life.live(steps: 6000)
        let before = try Self.residentPages()
        life.live(steps: 12_000)
        #expect(life.breach == nil, "\(life.breach ?? "")")
        #expect(try Self.residentPages() - before < 512, "pages of resident memory")
      }
    }
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

  var images: [[Survivor]] { whole.images }

  mutating func take(_ event: CommandEvent, _ survivor: Survivor?) {
    if survivor != nil { count += 1 }
    whole.take(event, count.isMultiple(of: 5) ? nil : survivor)
  }

  mutating func takeNews() -> [MemoryNews] { whole.takeNews() }

  mutating func resumed(_ survivor: Survivor, as number: UInt64) {
    whole.resumed(survivor, as: number)
  }

  mutating func restart(after end: GatewayEnd, at now: Moment, start: Moment) -> [Survivor] {
    whole.restart(after: end, at: now, start: start)
  }
}

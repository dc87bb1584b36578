// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import FaultSimulation
import Testing
import Values

@Suite struct ExpectationTests {
  private typealias House = LampAndShade

  private var expectation = FaultSimulation.Expectation(LampAndShade.facts)

  @Test mutating func `the newest value counts`() {
    expectation.asked(.number(30), of: House.brightness, by: 1)
    expectation.asked(.number(80), of: House.brightness, by: 2)
    #expect(expectation[House.brightness] == .value(.number(80)))
    #expect(expectation[House.power] == .value(House.on))
  }

  @Test mutating func `off ends what implies on`() {
    expectation.asked(.number(80), of: House.brightness, by: 1)
    expectation.asked(House.off, of: House.power, by: 2)
    #expect(expectation[House.power] == .value(House.off))
    #expect(expectation[House.brightness] == .unknown)
  }

  @Test mutating func `a newer brightness turns on what was off`() {
    expectation.asked(House.off, of: House.power, by: 1)
    expectation.asked(.number(80), of: House.brightness, by: 2)
    #expect(expectation[House.power] == .value(House.on))
    #expect(expectation[House.brightness] == .value(.number(80)))
  }

  @Test mutating func `the number 0 implies off`() {
    expectation.asked(House.on, of: House.power, by: 1)
    expectation.asked(.number(0), of: House.brightness, by: 2)
    #expect(expectation[House.power] == .value(House.off))
  }

  @Test mutating func `a stated value beats the implied one`() {
    expectation.asked([(House.brightness, .number(80)), (House.power, House.off)], by: 1)
    #expect(expectation[House.power] == .value(House.off))
    #expect(expectation[House.brightness] == .unknown)
  }

  @Test mutating func `of values that exclude each other the newer counts`() {
    expectation.asked(.number(300), of: House.warmth, by: 1)
    expectation.asked(.text("red"), of: House.color, by: 2)
    #expect(expectation[House.warmth] == .unknown)
    #expect(expectation[House.color] == .value(.text("red")))
  }

  @Test mutating func `a press decides about what it moves`() {
    expectation.asked(.number(30), of: House.position, by: 1)
    expectation.asked(.text("STOP"), of: House.command, by: 2)
    #expect(expectation[House.position] == .stopped)
    #expect(expectation.verdict(House.position, state: .number(12), isStopped: true) == .asIntended)
    #expect(isWrong(expectation.verdict(House.position, state: .number(30), isStopped: false)))
    expectation.asked(.number(70), of: House.position, by: 3)
    #expect(expectation[House.position] == .value(.number(70)))
  }

  @Test mutating func `another state is explained by a phase of the command alone`() {
    expectation.asked(.number(30), of: House.position, by: 1)
    end(House.position, 1, .confirmed)
    #expect(isWrong(expectation.verdict(House.position, state: .number(12), isStopped: false)))
    end(House.position, 1, .failed)
    #expect(
      expectation.verdict(House.position, state: .number(12), isStopped: false) == .whyNot(.failed)
    )
    #expect(
      expectation.verdict(House.position, state: .number(30), isStopped: false) == .asIntended
    )
  }

  @Test mutating func `a hand after the last change counts`() {
    expectation.asked(.number(30), of: House.position, by: 1)
    end(House.position, 1, .confirmed)
    expectation.touched(House.position, .number(5))
    #expect(expectation.verdict(House.position, state: .number(5), isStopped: false) == .byHand)
    #expect(isWrong(expectation.verdict(House.position, state: .number(30), isStopped: false)))
  }

  @Test mutating func `a hand that meets a command in flight leaves nothing certain`() {
    expectation.asked(.number(30), of: House.position, by: 1)
    expectation.touched(House.position, .number(5))
    #expect(expectation[House.position] == .unknown)
  }

  @Test mutating func `a hand that there was not is no reason`() {
    expectation.asked(.number(30), of: House.position, by: 1)
    end(House.position, 1, .superseded, "changed at the device")
    let verdict = expectation.verdict(House.position, state: .number(5), isStopped: false)
    #expect(isInvented(verdict))
  }

  @Test mutating func `what a crash lost before it was promised is not expected`() {
    expectation.asked(.number(30), of: House.brightness, by: 1)
    expectation.lost(.init(key: House.brightness, intent: 1))
    #expect(expectation[House.brightness] == .unknown)
    #expect(expectation[House.power] == .unknown)
  }

  @Test mutating func `nothing changes by itself`() {
    expectation.rested(House.position, at: .number(12))
    #expect(isWrong(expectation.verdict(House.position, state: .number(13), isStopped: false)))
  }

  private mutating func end(
    _ key: Int,
    _ intent: UInt64,
    _ phase: Phase,
    _ reason: String? = nil
  ) {
    expectation.phase(
      phase,
      of: .init(key: key, intent: intent),
      reason: reason,
      isFinal: true
    )
  }

  private func isWrong(_ verdict: FaultSimulation.Expectation.Verdict) -> Bool {
    if case .wrong = verdict { true } else { false }
  }

  private func isInvented(_ verdict: FaultSimulation.Expectation.Verdict) -> Bool {
    if case .inventedHand = verdict { true } else { false }
  }
}

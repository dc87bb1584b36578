// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing
import Values

@testable import Commands

@Suite struct WaitingStepsTests {
  private func step(_ amount: Double, at moment: Moment = .at(0)) -> WaitingSteps.Step {
    WaitingSteps.Step(
      change: .step(amount),
      number: UInt64(amount),
      receivedAt: moment,
      options: ChangeOptions()
    )
  }

  private func steps() -> WaitingSteps { WaitingSteps(keys: 2, patience: .seconds(2)) }

  @Test func `the steps of a key wait in order, and are removed together`() {
    var steps = steps()
    steps.append(step(1), for: .first)
    steps.append(step(2), for: .first)
    #expect(steps.keyCount == 1)
    #expect(steps.removeAll(of: .first).map(\.change) == [.step(1), .step(2)])
    #expect(steps.isEmpty == true)
    #expect(steps.nextOverdue == nil)
  }

  @Test func `the first step of a key sets the deadline of all`() {
    var steps = steps()
    steps.append(step(1, at: .at(0)), for: .first)
    steps.append(step(2, at: .at(1500)), for: .first)
    #expect(steps.nextOverdue == .at(2000))
    #expect(steps.popOverdue(at: .at(1999)) == nil)
    #expect(steps.popOverdue(at: .at(2000)) == .first)
  }

  @Test func `a key has room for a limited number of steps`() throws {
    var steps = steps()
    for _ in 0..<WaitingSteps.limit {
      try steps.checkLimit(of: .first)
      steps.append(step(1), for: .first)
    }
    #expect(throws: ValidationError.self) { try steps.checkLimit(of: .first) }
    try steps.checkLimit(of: .second)
  }

  @Test func `steps that end have one event each`() {
    var steps = steps()
    var log = EventLog(keys: 2)
    steps.append(step(1), for: .first)
    steps.append(step(2), for: .first)
    #expect(steps.end(.first, as: .cancelled, reason: "no", in: &log, at: .at(1)) == 2)
    #expect(log.events.map(\.number) == [1, 2])
    #expect(log.events.allSatisfy { $0.isFinal && $0.phase == .cancelled && $0.reason == "no" })
    #expect(steps.end(.first, as: .cancelled, reason: "no", in: &log, at: .at(1)) == 0)
  }
}

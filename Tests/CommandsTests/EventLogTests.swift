// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import LastOut
import Testing
import Values

@testable import Commands

@Suite struct EventLogTests {
  private static let registry = Registry([Device(id: "d", name: "D", properties: [.level()])])
  private static let facts = PropertyFacts.all(in: registry, Relations.all(in: registry))

  private func emit(_ phase: Phase, _ change: PendingChange, in log: inout EventLog) {
    log.emit(phase, of: change, for: .first, Self.facts[.first], at: .at(5))
  }

  @Test(arguments: [Phase.accepted, .superseded, .sending])
  func `where nobody watches, early phases are emitted only for an origin`(phase: Phase) {
    var log = EventLog(keys: 1)
    emit(phase, .of(1), in: &log)
    #expect(log.events.isEmpty)
    emit(phase, .of(1, origin: ChangeOrigin()), in: &log)
    #expect(log.events.map(\.phase) == [phase])
  }

  @Test(arguments: Phase.allCases)
  func `a watcher receives every phase`(phase: Phase) {
    var log = EventLog(keys: 1)
    log.isWatched = true
    emit(phase, .of(1), in: &log)
    #expect(log.events.map(\.phase) == [phase])
  }

  @Test func `only a journal receives when a value expires`() {
    var log = EventLog(keys: 1)
    log.isWatched = true
    emit(.accepted, .of(1, expiresAt: .at(9)), in: &log)
    log.isJournalled = true
    emit(.accepted, .of(1, expiresAt: .at(9)), in: &log)
    #expect(log.events.map(\.expiresAt) == [nil, .at(9)])
  }

  @Test func `final phases are counted as they are emitted`() {
    var log = EventLog(keys: 1)
    for phase in [Phase.confirmed, .failed, .failed, .expired, .unchanged] {
      emit(phase, .of(1), in: &log)
    }
    #expect(log.statistics.confirmed == 1)
    #expect(log.statistics.failed == 2)
    #expect(log.statistics.expired == 1)
    #expect(log.statistics.unchanged == 1)
  }
}

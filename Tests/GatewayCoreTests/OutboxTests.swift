// Settle
// SPDX-License-Identifier: Apache-2.0

import Values
import Commands
import Devices
import LastOut
import Testing

@testable import GatewayCore

@Suite struct OutboxTests {
  private static let now = Moment(nanoseconds: 1_000_000_000)

  private static func words(_ effect: Effect?) -> String? {
    switch effect {
    case nil: nil
    case .emit(let event): "\(event.number)"
    case .log(let entry): "\(entry.message)"
    default: "other"
    }
  }

  @Test func `notices come before events, each in their order`() {
    var outbox = Outbox()
    outbox.emit(.sample(KeyIndex(0), .accepted, number: 1, at: Self.now))
    outbox.log(LogEntry(.info, "first"))
    outbox.log(nil)
    outbox.emit(.sample(KeyIndex(0), .sending, number: 2, at: Self.now))
    outbox.append(.readClock)
    let order = (0..<5).map { _ in Self.words(outbox.popFirst()) }
    #expect(order == ["first", "other", "1", "2", nil])
  }

  @Test func `events of a state machine follow those that wait`() {
    var machine = CommandStateMachine(registry: CoreBench().core.registry)
    var outbox = Outbox()
    outbox.emit(.sample(KeyIndex(0), .accepted, number: 100, at: Self.now))
    for _ in 0..<2 {
      _ = machine.log.reject(KeyIndex(0), reason: "no", at: Self.now, origin: nil)
    }
    outbox.emitAll(of: &machine)
    #expect(machine.log.events.isEmpty)
    let order = (0..<4).map { _ in Self.words(outbox.popFirst()) }
    #expect(order == ["100", "1", "2", nil])
  }
}

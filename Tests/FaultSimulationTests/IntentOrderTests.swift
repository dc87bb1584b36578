// Settle
// SPDX-License-Identifier: Apache-2.0

import FaultSimulation
import Testing
import Values

@Suite struct IntentOrderTests {
  private typealias House = LampAndShade

  private var order = IntentOrder(LampAndShade.facts)

  @Test(arguments: [
    (House.position, Value.number(1), House.position, Value.number(2), Clause.orderOfKey),
    (House.command, .text("STOP"), House.position, .number(2), .orderOfEnds),
    (House.position, .number(2), House.command, .text("STOP"), .orderOfEnds),
    (House.command, .text("OPEN"), House.command, .text("STOP"), .orderOfPresses),
    (House.warmth, .number(300), House.color, .text("red"), .orderOfExcludes),
    (House.brightness, .number(80), House.power, House.off, .orderOfImplies),
    (House.power, House.off, House.brightness, .number(80), .orderOfImplies),
  ])
  mutating func `an older message after a newer one is found`(
    older: Int,
    olderValue: Value,
    newer: Int,
    newerValue: Value,
    clause: Clause
  ) {
    let first = found(.init(key: newer, value: newerValue, intent: 2))
    let second = found(.init(key: older, value: olderValue, intent: 1))
    #expect(first == nil)
    #expect(second == clause)
  }

  @Test mutating func `messages in order, and those that do not concern each other, are right`() {
    let clauses = [
      found(.init(key: House.position, value: .number(1), intent: 5)),
      found(.init(key: House.position, value: .number(2), intent: 6)),
      found(.init(key: House.power, value: House.on, intent: 2)),
      // On, and a brightness that turns on, in any order.
      found(.init(key: House.brightness, value: .number(3), intent: 1)),
    ]
    #expect(clauses == [nil, nil, nil, nil])
  }

  @Test mutating func `a merged message is as new as its newest change`() {
    let first = found(.init(key: House.power, value: House.off, intent: 2))
    let second = found(
      .init(key: House.brightness, value: .number(3), intent: 1),
      .init(key: House.warmth, value: .number(300), intent: 3)
    )
    #expect(first == nil)
    #expect(second == nil)
  }

  @Test mutating func `a value of a group is in order with those of its members`() {
    let first = found(.init(key: House.power, value: House.off, intent: 2))
    let second = found(.init(key: House.power, value: House.on, intent: 1, isOfGroup: true))
    #expect(first == nil)
    #expect(second == .orderOfGroups)
  }

  private mutating func found(_ parts: IntentOrder.Part...) -> Clause? {
    order.arrived(parts)?.clause
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import LastOut
import Testing

@testable import GatewayCore

@Suite struct StatePublisherTests {
  private static let start = Moment(nanoseconds: 1_000_000_000)

  private static func due(_ states: inout StatePublisher, at now: Moment) -> [StatePublisher.Item] {
    states.advance(to: now)
    var items: [StatePublisher.Item] = []
    while let place = states.nextDue(at: now) {
      items.append(states.item(at: place))
      _ = states.record(Array("\(now.nanoseconds)".utf8), at: place)
    }
    return items
  }

  @Test func `the first change is due at once, later ones after 100 ms, the last guaranteed`() {
    var states = StatePublisher(properties: 1, devices: 1)
    let all: [StatePublisher.Item] = [.target(KeyIndex(0)), .targets(device: 0), .info(device: 0)]
    states.changed(KeyIndex(0), device: 0, at: Self.start)
    #expect(Self.due(&states, at: Self.start) == all)
    for millisecond in [20, 50, 90] {
      let now = Self.start.advanced(by: .milliseconds(millisecond))
      states.changed(KeyIndex(0), device: 0, at: now)
      #expect(Self.due(&states, at: now).isEmpty)
    }
    let end = Self.start.advanced(by: .milliseconds(100))
    #expect(states.nextDeadline == end)
    #expect(Set(Self.due(&states, at: end)) == Set(all))
    #expect(states.nextDeadline == nil)
  }

  @Test func `the same payload is published once, and again on a new connection`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changedInfo(ofDevice: 0, at: Self.start)
    let place = states.nextDue(at: Self.start) ?? -1
    let isFirstNew = states.record([1], at: place)
    let isSecondNew = states.record([1], at: place)
    #expect(isFirstNew)
    #expect(!isSecondNew)
    states.forgetPublished()
    #expect(states.nextDue(at: Self.start) == place)
    let isNewAgain = states.record([1], at: place)
    #expect(isNewAgain)
  }

  @Test func `an empty payload clears only what was published before`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changedInfo(ofDevice: 0, at: Self.start)
    let place = states.nextDue(at: Self.start) ?? -1
    let results = [[], [1], []].map { states.record($0, at: place) }
    #expect(results == [false, true, true])
  }

  @Test func `what finds no room is due again`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changedInfo(ofDevice: 0, at: Self.start)
    let place = states.nextDue(at: Self.start) ?? -1
    #expect(states.dueCount == 0)
    states.putBack(place)
    #expect(states.nextDue(at: Self.start) == place)
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Devices
import JSON
import LastOut
import Testing
import Values

@testable import GatewayCore

@Suite struct StatePublisherTests {
  private static func moment(_ milliseconds: UInt64) -> Moment {
    Moment(nanoseconds: (milliseconds + 1000) * 1_000_000)
  }

  @Test func `a target is shown at once, then every 100 ms at most, and the last one always`() {
    var states = StatePublisher(properties: 1, devices: 1)
    var shown: [UInt64] = []
    for millisecond in 0..<1000 as Range<UInt64> {
      let now = Self.moment(millisecond)
      states.advance(to: now)
      if millisecond < 300 || millisecond == 555 {
        states.changed(KeyIndex(0), device: 0, at: now)
      }
      if states.takeDue(at: now).contains(0) { shown.append(millisecond) }
    }
    #expect(shown == [0, 100, 200, 300, 555])
    #expect(states.nextDeadline == nil)
  }

  @Test func `a change right after a show waits for its turn`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    states.changed(KeyIndex(0), device: 0, at: Self.moment(1))
    states.advance(to: Self.moment(100))
    _ = states.takeDue(at: Self.moment(100))
    states.changed(KeyIndex(0), device: 0, at: Self.moment(101))
    #expect(states.isEmpty == true)
    #expect(states.nextDeadline == Self.moment(200))
  }

  /// What `keys` keys, each of its own device, show while they change every 5 ms, and after.
  private static func flood(keys: Int, milliseconds: Range<UInt64>, of states: inout StatePublisher)
    -> (
      shows: Int, lastOnes: [Int32: UInt64]
    )
  {
    var shows = 0
    var lastOnes: [Int32: UInt64] = [:]
    let end = milliseconds.upperBound + 1100
    for millisecond in stride(from: milliseconds.lowerBound, to: end, by: 5) {
      let now = moment(millisecond)
      states.advance(to: now)
      if milliseconds.contains(millisecond) {
        for key in 0..<keys { states.changed(KeyIndex(Int32(key)), device: key, at: now) }
      }
      for place in states.takeDue(at: now) {
        shows += 1
        lastOnes[place] = millisecond
      }
    }
    return (shows, lastOnes)
  }

  @Test func `as long as few topics move, each is shown every 100 ms`() {
    var states = StatePublisher(properties: 100, devices: 100)
    let (shows, _) = Self.flood(keys: 100, milliseconds: 1000..<2000, of: &states)
    #expect(shows == 300 * 11)
  }

  @Test(arguments: [300, 1000, 1500])
  func `where many move, all share 5,000 shows a second, and the last of each comes`(keys: Int) {
    var states = StatePublisher(properties: keys, devices: keys)
    let (shows, lastOnes) = Self.flood(keys: keys, milliseconds: 1000..<6000, of: &states)
    // The first of each at once, the second after 100 ms; one more of each after the end.
    #expect((20_000...25_000 + 3 * 3 * keys).contains(shows))
    #expect(lastOnes.count == 3 * keys)
    #expect(lastOnes.values.allSatisfy { (5995...7000).contains($0) })
    #expect(states.nextDeadline == nil)

    // The first rest may still be a longer one.
    let (fewer, _) = Self.flood(keys: 1, milliseconds: 9000..<10_000, of: &states)
    #expect((27...33).contains(fewer))
  }

  @Test func `more keys than can be shown in a second are shown once a second`() {
    var states = StatePublisher(properties: 4000, devices: 4000)
    let (shows, lastOnes) = Self.flood(keys: 4000, milliseconds: 1000..<3000, of: &states)
    #expect(shows <= 12_000 * 5)
    #expect(lastOnes.count == 12_000)
    #expect(lastOnes.values.allSatisfy { (2995...4000).contains($0) })
  }

  @Test func `a key's change shows its target, its device's targets and info`() {
    var states = StatePublisher(properties: 3, devices: 2)
    states.changed(KeyIndex(2), device: 1, at: Self.moment(0))
    let shown = states.takeDue(at: Self.moment(0)).map { states.item(at: $0) }
    #expect(shown == [.target(KeyIndex(2)), .targets(device: 1), .info(device: 1)])
    #expect(states.takeDue(at: Self.moment(0)) == [])
  }

  @Test func `places stay what they were when keys and devices are added`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    let before = states.takeDue(at: Self.moment(0))
    #expect(states.record([52], at: before[0]) == true)

    states.extend(properties: 3, devices: 2)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(500))
    states.changed(KeyIndex(2), device: 1, at: Self.moment(500))

    let after = states.takeDue(at: Self.moment(500))
    #expect(Array(after.prefix(3)) == before)
    #expect(after.count == 6)
    #expect(states.record([52], at: before[0]) == false)
  }

  @Test func `what shows the same already is not shown again, until a new connection`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    _ = states.takeDue(at: Self.moment(0))
    #expect(states.record([], at: 0) == false)
    #expect(states.record([52], at: 0) == true)
    #expect(states.record([52], at: 0) == false)
    #expect(states.record([], at: 0) == true)
    states.forgetPublished()
    #expect(states.takeDue(at: Self.moment(0)) == [0])
    #expect(states.record([52], at: 0) == true)
  }

  @Test func `a change that was undone before it was shown does not delay the next`() throws {
    let level = Property(
      id: "level",
      kind: .number(NumberRule()),
      policy: Policy(delay: .seconds(9)),
      command: CommandEndpoint(topic: "set", payload: PayloadTemplate("$value"))
    )
    let device = Device(id: "d", name: "d", properties: [level])
    var commands = CommandStateMachine(registry: Registry([device]))
    var states = StatePublisher(properties: 1, devices: 1)
    func shown(_ value: Double, after milliseconds: UInt64) throws -> [String] {
      let now = Self.moment(milliseconds)
      states.advance(to: now)
      try commands.change(.set(.number(value)), of: KeyIndex(0), at: now)
      _ = states.collectChanges(of: &commands, at: now)
      var payloads: [String] = []
      while let next = states.next(of: commands, at: now) {
        if case .target = next.item {
          payloads.append(String(decoding: next.payload, as: UTF8.self))
        }
      }
      return payloads
    }
    #expect(try shown(1, after: 0) == ["1"])
    #expect(try shown(2, after: 20) == [])
    #expect(try shown(1, after: 40) == [])
    #expect(try shown(1, after: 300) == [])
    #expect(try shown(2, after: 310) == ["2"])
  }

  @Test func `a target that went while the broker was away is cleared on the next connection`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    _ = states.takeDue(at: Self.moment(0))
    #expect(states.record([52], at: 0) == true)
    states.forgetPublished()
    #expect(states.record([], at: 0) == true)
    #expect(states.record([], at: 0) == false)
  }

  @Test func `what finds no room is due again, each topic once`() {
    var states = StatePublisher(properties: 2, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    #expect(states.nextDue(at: Self.moment(0)) == 0)
    for place in states.takeDue(at: Self.moment(0)) { states.putBack(place) }
    states.changed(KeyIndex(1), device: 0, at: Self.moment(200))
    #expect(states.takeDue(at: Self.moment(200)).sorted() == [1, 2, 3])
  }

  @Test func `what found no room is published although it did not change since`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    _ = states.takeDue(at: Self.moment(0))
    #expect(states.record([52], at: 0) == true)
    states.putBack(0)
    #expect(states.takeDue(at: Self.moment(0)) == [0])
    #expect(states.record([52], at: 0) == true)
  }

  @Test func `a change that waits is published once on a new connection`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    for place in states.takeDue(at: Self.moment(0)) { _ = states.record([52], at: Int32(place)) }
    states.changed(KeyIndex(0), device: 0, at: Self.moment(50))
    states.forgetPublished()
    #expect(states.takeDue(at: Self.moment(60)).sorted() == [0, 1, 2])
    #expect(states.nextDeadline == nil)
  }

  @Test func `what waits for room is not queued behind itself, and rests from when it is shown`() {
    var states = StatePublisher(properties: 1, devices: 1)
    states.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    states.changed(KeyIndex(0), device: 0, at: Self.moment(1))
    #expect(states.nextDeadline == nil)
    #expect(states.takeDue(at: Self.moment(70)) == [0, 1, 2])
    states.changed(KeyIndex(0), device: 0, at: Self.moment(110))
    #expect(states.nextDeadline == Self.moment(170))
  }

  @Test func `a mistake on another topic is logged although the kind was logged just now`() {
    var rejections = RejectionLog()
    func line(_ topic: String, _ millisecond: UInt64) -> String? {
      rejections.record(.badValue, topic: topic, reason: "r", at: Self.moment(millisecond))
        .map { "\($0.fields.first { $0.key == "count" }?.value ?? "")" }
    }
    #expect(line("a", 0) == "1")
    #expect(line("a", 100) == nil)
    #expect(line("b", 200) == "1")
    #expect(line("a", 10_000) == "2")
    #expect(line("b", 10_100) == nil)
    #expect(rejections.total(.badValue) == 5)
  }

  @Test func `a flood of topics logs no more lines than a few topics do`() {
    var rejections = RejectionLog()
    var lines = 0
    for number in 0..<20_000 as Range<UInt64> {
      let entry = rejections.record(
        .unknownKey,
        topic: "t\(number)",
        reason: "r",
        at: Self.moment(number)
      )
      if entry != nil { lines += 1 }
    }
    #expect(rejections.total(.unknownKey) == 20_000)
    #expect((17...40).contains(lines))
  }

  @Test func `rejections are counted one by one and logged in bundles`() {
    var rejections = RejectionLog()
    var lines = 0
    for second in 0..<25 as Range<UInt64> {
      let entry = rejections.record(
        .badValue,
        topic: "t",
        reason: "r",
        at: Self.moment(second * 1000)
      )
      if entry != nil { lines += 1 }
    }
    for _ in 0..<3 where rejections.recordRetained(topic: "settle/lamp/set") != nil { lines += 1 }
    #expect(rejections.total(.badValue) == 25)
    #expect(rejections.total(.retained) == 3)
    #expect(lines == 4)
  }
}

extension StatePublisher {
  /// Everything that is due, oldest first.
  fileprivate mutating func takeDue(at now: Moment) -> [Int32] {
    var places: [Int32] = []
    while let place = nextDue(at: now) { places.append(place) }
    return places
  }
}

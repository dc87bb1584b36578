// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import LastOut
import Operations
import Synchronization
import Testing

@testable import Commands
@testable import Gateway

@Suite struct PureSurfaceTests {
  private static func moment(_ milliseconds: UInt64) -> Moment {
    Moment(nanoseconds: (milliseconds + 1000) * 1_000_000)
  }

  @Test func `a target is shown at once, then every 100 ms at most, and the last one always`() {
    var echo = TargetEcho(properties: 1, devices: 1)
    var shown: [UInt64] = []
    for millisecond in 0..<1000 as Range<UInt64> {
      let now = Self.moment(millisecond)
      echo.advance(to: now)
      if millisecond < 300 || millisecond == 555 {
        echo.changed(KeyIndex(0), device: 0, at: now)
      }
      if echo.takeDue(at: now).contains(0) { shown.append(millisecond) }
    }
    #expect(shown == [0, 100, 200, 300, 555])
    #expect(echo.nextDeadline == nil)
  }

  @Test func `a change right after a show waits for its turn`() {
    var echo = TargetEcho(properties: 1, devices: 1)
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(1))
    echo.advance(to: Self.moment(100))
    _ = echo.takeDue(at: Self.moment(100))
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(101))
    #expect(echo.isEmpty == true)
    #expect(echo.nextDeadline == Self.moment(200))
  }

  /// What `keys` keys, each of its own device, show while they change every 5 ms, and after.
  private static func flood(keys: Int, milliseconds: Range<UInt64>, of echo: inout TargetEcho) -> (
    shows: Int, lastOnes: [Int32: UInt64]
  ) {
    var shows = 0
    var lastOnes: [Int32: UInt64] = [:]
    let end = milliseconds.upperBound + 1100
    for millisecond in stride(from: milliseconds.lowerBound, to: end, by: 5) {
      let now = moment(millisecond)
      echo.advance(to: now)
      if milliseconds.contains(millisecond) {
        for key in 0..<keys { echo.changed(KeyIndex(Int32(key)), device: key, at: now) }
      }
      for place in echo.takeDue(at: now) {
        shows += 1
        lastOnes[place] = millisecond
      }
    }
    return (shows, lastOnes)
  }

  @Test func `as long as few topics move, each is shown every 100 ms`() {
    var echo = TargetEcho(properties: 100, devices: 100)
    let (shows, _) = Self.flood(keys: 100, milliseconds: 1000..<2000, of: &echo)
    #expect(shows == 300 * 11)
  }

  @Test(arguments: [300, 1000, 1500])
  func `where many move, all share 5,000 shows a second, and the last of each comes`(keys: Int) {
    var echo = TargetEcho(properties: keys, devices: keys)
    let (shows, lastOnes) = Self.flood(keys: keys, milliseconds: 1000..<6000, of: &echo)
    // The first of each at once, the second after 100 ms; one more of each after the end.
    #expect((20_000...25_000 + 3 * 3 * keys).contains(shows))
    #expect(lastOnes.count == 3 * keys)
    #expect(lastOnes.values.allSatisfy { (5995...7000).contains($0) })
    #expect(echo.nextDeadline == nil)

    // The first rest may still be a longer one.
    let (fewer, _) = Self.flood(keys: 1, milliseconds: 9000..<10_000, of: &echo)
    #expect((27...33).contains(fewer))
  }

  @Test func `more keys than can be shown in a second are shown once a second`() {
    var echo = TargetEcho(properties: 4000, devices: 4000)
    let (shows, lastOnes) = Self.flood(keys: 4000, milliseconds: 1000..<3000, of: &echo)
    #expect(shows <= 12_000 * 5)
    #expect(lastOnes.count == 12_000)
    #expect(lastOnes.values.allSatisfy { (2995...4000).contains($0) })
  }

  @Test func `a key's change shows its target, its device's targets and info`() {
    var echo = TargetEcho(properties: 3, devices: 2)
    echo.changed(KeyIndex(2), device: 1, at: Self.moment(0))
    let shown = echo.takeDue(at: Self.moment(0)).map { echo.item(at: $0) }
    #expect(shown == [.target(KeyIndex(2)), .targets(device: 1), .info(device: 1)])
    #expect(echo.takeDue(at: Self.moment(0)) == [])
  }

  @Test func `places stay what they were when keys and devices are added`() {
    var echo = TargetEcho(properties: 1, devices: 1)
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    let before = echo.takeDue(at: Self.moment(0))
    #expect(echo.note([52], at: before[0]) == true)

    echo.extend(properties: 3, devices: 2)
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(500))
    echo.changed(KeyIndex(2), device: 1, at: Self.moment(500))

    let after = echo.takeDue(at: Self.moment(500))
    #expect(Array(after.prefix(3)) == before)
    #expect(after.count == 6)
    #expect(echo.note([52], at: before[0]) == false)
  }

  @Test func `what shows the same already is not shown again, until a new connection`() {
    var echo = TargetEcho(properties: 1, devices: 1)
    #expect(echo.note([], at: 0) == false)
    #expect(echo.note([52], at: 0) == true)
    #expect(echo.note([52], at: 0) == false)
    #expect(echo.note([], at: 0) == true)
    echo.forget()
    #expect(echo.takeDue(at: Self.moment(0)) == [0])
    #expect(echo.note([52], at: 0) == true)
  }

  @Test func `a target that went while the broker was away is cleared on the next connection`() {
    var echo = TargetEcho(properties: 1, devices: 1)
    #expect(echo.note([52], at: 0) == true)
    echo.forget()
    #expect(echo.note([], at: 0) == true)
    #expect(echo.note([], at: 0) == false)
  }

  @Test func `what finds no room is due again, each topic once`() {
    var echo = TargetEcho(properties: 2, devices: 1)
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    #expect(echo.nextDue(at: Self.moment(0)) == 0)
    for place in echo.takeDue(at: Self.moment(0)) { echo.putBack(place) }
    echo.changed(KeyIndex(1), device: 0, at: Self.moment(200))
    #expect(echo.takeDue(at: Self.moment(200)).sorted() == [1, 2, 3])
  }

  @Test func `what waits for room is not queued behind itself, and rests from when it is shown`() {
    var echo = TargetEcho(properties: 1, devices: 1)
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(0))
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(1))
    #expect(echo.nextDeadline == nil)
    #expect(echo.takeDue(at: Self.moment(70)) == [0, 1, 2])
    echo.changed(KeyIndex(0), device: 0, at: Self.moment(110))
    #expect(echo.nextDeadline == Self.moment(170))
  }

  @Test func `topics have all their roles, unknown ones none`() {
    var table = TopicTable()
    table.add(.state(KeyIndex(1), source: 0), for: "zigbee2mqtt/lamp")
    table.add(.state(KeyIndex(2), source: 0), for: "zigbee2mqtt/lamp")
    table.add(.deviceSet(0), for: "settle/lamp/set")
    #expect(table.roles(of: Array("zigbee2mqtt/lamp".utf8).span).count == 2)
    #expect(table.roles(of: Array("settle/lamp/set".utf8).span).count == 1)
    #expect(table.roles(of: Array("settle/lamp".utf8).span).isEmpty)
  }

  @Test func `refusals are counted one by one and logged in bundles`() {
    let lines = Lines()
    var refusals = Refusals(log: Logger { lines.append($0) })
    for second in 0..<25 as Range<UInt64> {
      refusals.note(.badValue, topic: "t", reason: "r", at: Self.moment(second * 1000))
    }
    for _ in 0..<3 { refusals.noteRetained(topic: "settle/lamp/set") }
    #expect(refusals.total(.badValue) == 25)
    #expect(refusals.total(.retained) == 3)
    #expect(refusals.total == 28)
    #expect(lines.count == 4)
  }

  private static func event(_ number: UInt64, _ origin: ChangeOrigin? = nil) -> CommandEvent {
    CommandEvent(
      key: KeyIndex(0),
      phase: .sent,
      value: .number(40),
      collapsed: 17,
      number: number,
      acceptedAt: moment(0),
      at: moment(123),
      attempt: 1,
      reason: nil,
      origin: origin,
      isFinal: true
    )
  }

  @Test func `an event carries the caller's id and source, and the wall clock's time`() {
    let identifiers = Identifiers(
      wallMilliseconds: 1_795_248_000_000,
      now: Self.moment(0),
      session: 7
    )
    let origin = ChangeOrigin(id: .integer(5), source: "cli")
    let object = identifiers.object(Self.event(1, origin), key: "lamp/level")
    #expect(object.id == "5")
    #expect(object.source == "cli")
    #expect(object.collapsed == 17)
    #expect(object.at == "2026-11-21T08:00:00.123Z")
  }

  @Test(
    arguments: [
      nil, ChangeOrigin(), ChangeOrigin(id: .integer(5), source: "cli"),
      ChangeOrigin(id: "a \"b\" \u{1F525}", source: "p\\n"), ChangeOrigin(id: 1.5),
    ]
  )
  func `an event is written for a client of the socket as it is for everybody else`(
    origin: ChangeOrigin?
  ) {
    let start = 1_795_248_000_000 as Int64
    var identifiers = Identifiers(wallMilliseconds: start, now: Self.moment(0), session: 7)
    for (number, phase) in Phase.allCases.enumerated() {
      var event = Self.event(UInt64(number) << 40, origin)
      event.phase = phase
      event.at = Self.moment(UInt64(number) * 7)
      event.value = [.number(21.5), .boolean(true), .text("heat\n"), nil][number % 4]
      event.reason = number.isMultiple(of: 2) ? nil : "newer value"
      event.attempt = number
      var line: [UInt8] = []
      identifiers.append(event, key: "lamp/level", to: &line)
      let object = identifiers.object(event, key: "lamp/level")
      #expect(line == ControlReply.event(object, id: origin?.id).line)
    }
  }

  @Test func `a change that says nothing about itself came by MQTT`() {
    let identifiers = Identifiers(wallMilliseconds: 1, now: Self.moment(0), session: 7)
    #expect(identifiers.object(Self.event(1), key: "a/b").source == "mqtt")
  }

  @Test func `new ids have 26 characters and sort as the changes came`() {
    let identifiers = Identifiers(wallMilliseconds: 1, now: Self.moment(0), session: 7)
    let ids = [1, 2, 40, 4000].map { identifiers.object(Self.event($0), key: "a/b").id }
    #expect(ids.map(\.count) == [26, 26, 26, 26])
    #expect(ids == ids.sorted())
    #expect(Set(ids).count == 4)
    #expect(CrockfordText.of(high: .max, low: .max) == "7ZZZZZZZZZZZZZZZZZZZZZZZZZ")
    #expect(CrockfordText.of(high: 0, low: 33) == "00000000000000000000000011")
    let digits = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
    for number in digits.indices {
      #expect(CrockfordText.of(high: 0, low: UInt64(number)).last == digits[number])
    }
  }
}

extension TargetEcho {
  /// Everything that is due, oldest first.
  fileprivate mutating func takeDue(at now: Moment) -> [Int32] {
    var places: [Int32] = []
    while let place = nextDue(at: now) { places.append(place) }
    return places
  }
}

/// What was logged.
private final class Lines: Sendable {
  private let lines = Mutex<[String]>([])

  var count: Int { lines.withLock { $0.count } }

  func append(_ line: String) { lines.withLock { $0.append(line) } }
}

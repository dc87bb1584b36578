// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import GatewayCore
import JSON
import LastOut
import Testing
import Values

@testable import Commands
@testable import Gateway

@Suite struct EventEncoderTests {
  private static func moment(_ milliseconds: UInt64) -> Moment {
    Moment(nanoseconds: (milliseconds + 1000) * 1_000_000)
  }

  private static func encoder(wallMilliseconds: Int64 = 1) -> EventEncoder {
    EventEncoder(
      CommandIdentifiers(wallMilliseconds: wallMilliseconds, now: moment(0), session: 7),
      wallMilliseconds: wallMilliseconds,
      now: moment(0)
    )
  }

  @Test func `topics have all their roles, unknown ones none`() {
    var table = TopicTable()
    table.add(.state(KeyIndex(1), source: 0), for: "zigbee2mqtt/lamp")
    table.add(.state(KeyIndex(2), source: 0), for: "zigbee2mqtt/lamp")
    table.add(.command(.deviceSet(0)), for: "settle/lamp/set")
    #expect(table.roles(of: Array("zigbee2mqtt/lamp".utf8).span).count == 2)
    #expect(table.roles(of: Array("settle/lamp/set".utf8).span).count == 1)
    #expect(table.roles(of: Array("settle/lamp".utf8).span).isEmpty)
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
    let encoder = Self.encoder(wallMilliseconds: 1_795_248_000_000)
    let origin = ChangeOrigin(id: .integer(5), source: "cli")
    let object = encoder.object(Self.event(1, origin), key: "lamp/level")
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
    var encoder = Self.encoder(wallMilliseconds: start)
    for (number, phase) in Phase.allCases.enumerated() {
      var event = Self.event(UInt64(number) << 40, origin)
      event.phase = phase
      event.at = Self.moment(UInt64(number) * 7)
      event.value = [.number(21.5), .boolean(true), .text("heat\n"), nil][number % 4]
      event.reason = number.isMultiple(of: 2) ? nil : "newer value"
      event.attempt = number
      var line: [UInt8] = []
      encoder.append(event, key: "lamp/level", to: &line)
      let object = encoder.object(event, key: "lamp/level")
      #expect(line == ControlReply.event(object, id: origin?.id).line)
    }
  }

  @Test func `the default source of a change is MQTT`() {
    let encoder = Self.encoder()
    #expect(encoder.object(Self.event(1), key: "a/b").source == "mqtt")
  }

  @Test func `new ids have 26 characters and sort in the order of the changes`() {
    let encoder = Self.encoder()
    let ids = [1, 2, 40, 4000].map { encoder.object(Self.event($0), key: "a/b").id }
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

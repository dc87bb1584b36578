// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import GatewayCore
import Glibc
import JSON
import LastOut
import Testing
import Values

@testable import Commands
@testable import Gateway

/// The wall clock jumps; no decision depends on it.
@Suite struct ClockTests {
  private static func moment(_ seconds: UInt64) -> Moment {
    Moment(nanoseconds: seconds * 1_000_000_000)
  }

  private static func encoder(wallMilliseconds: Int64, now: Moment) -> EventEncoder {
    EventEncoder(
      CommandIdentifiers(wallMilliseconds: wallMilliseconds, now: now, session: 7),
      wallMilliseconds: wallMilliseconds,
      now: now
    )
  }

  private static func event(at seconds: UInt64) -> CommandEvent {
    CommandEvent(
      key: KeyIndex(0),
      phase: .sent,
      value: .number(40),
      collapsed: 0,
      number: seconds,
      acceptedAt: moment(seconds),
      at: moment(seconds),
      attempt: 1,
      reason: nil,
      origin: nil,
      isFinal: true
    )
  }

  /// A machine without a clock of its own starts in 1970 and learns the time later.
  @Test func `events show the time of day as it is, not as it was at the start`() {
    var encoder = Self.encoder(wallMilliseconds: 5000, now: Self.moment(60))
    let early = encoder.object(Self.event(at: 61), key: "a/b")
    #expect(early.at == "1970-01-01T00:00:06.000Z")

    encoder.tie(wallMilliseconds: 1_795_248_000_000, now: Self.moment(70))

    let late = encoder.object(Self.event(at: 70), key: "a/b")
    #expect(late.at == "2026-11-21T08:00:00.000Z")
    #expect(early.id < late.id)
    // A command keeps its id, whatever is learned of the time meanwhile.
    #expect(encoder.object(Self.event(at: 61), key: "a/b").id == early.id)
  }

  @Test(arguments: [nil, .string("tap \"7\""), .integer(7), .number(0.5)] as [JSONValue?])
  func `an event is the same on its topic, whether it was an object before or not`(id: JSONValue?) {
    var encoder = Self.encoder(wallMilliseconds: 5000, now: Self.moment(60))
    for (phase, reason) in [(Phase.sent, nil), (.failed, "no \"answer\"")] {
      var event = Self.event(at: 61)
      event.phase = phase
      event.reason = reason
      event.origin = id.map { ChangeOrigin(id: $0, source: "socket") }
      var bytes: [UInt8] = []
      encoder.append(event, key: "a/b", withTextID: true, to: &bytes)
      #expect(bytes == encoder.object(event, key: "a/b").bytes)
    }
  }
}

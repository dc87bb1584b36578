// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import JSON
import LastOut
import Operations

/// Turns what the state machine counts into what people read: ids, times, event objects.
struct Identifiers {
  private let session: UInt16
  /// Of ids, which must not change while a command lives.
  private let wallStart: Int64
  private let monotonicStart: Moment
  /// What was last known of the time of day, and when.
  private var wall: (milliseconds: Int64, at: Moment)
  private var timeText = TimeText()

  /// Ties the monotonic clock to the wall clock: `wallMilliseconds` since 1970 at `now`.
  ///
  /// `session` tells the ids of two runs of the gateway apart.
  init(wallMilliseconds: Int64, now: Moment, session: UInt16) {
    wallStart = wallMilliseconds
    monotonicStart = now
    wall = (wallMilliseconds, now)
    self.session = session
  }

  /// Ties the clocks anew for the times that people read: the wall clock is set now and then, and
  /// goes on while the machine sleeps.
  mutating func tie(wallMilliseconds: Int64, now: Moment) {
    wall = (wallMilliseconds, now)
  }

  /// The event as every surface shows it.
  func object(_ event: CommandEvent, key: String) -> EventObject {
    EventObject(
      id: id(of: event),
      key: key,
      phase: event.phase,
      value: event.value?.json,
      collapsed: event.collapsed,
      source: Self.source(of: event.origin),
      at: WallClock.text(milliseconds: wallMilliseconds(at: event.at)),
      attempt: event.attempt,
      reason: event.reason
    )
  }

  /// Appends the event's object, with the caller's identifier as it was given, or as a text for
  /// those who did not give it.
  mutating func append(
    _ event: borrowing CommandEvent,
    key: String,
    withTextID: Bool = false,
    to output: inout [UInt8]
  ) {
    let milliseconds = wallMilliseconds(at: event.at)
    timeText.set(milliseconds)
    let given = event.origin?.id.map { withTextID ? .string(Self.text($0)) : $0 }
    let number = event.number
    let acceptedAt = event.acceptedAt
    EventText.append(
      id: { appendID(given, number: number, acceptedAt: acceptedAt, to: &$0) },
      key: key,
      phase: event.phase,
      value: event.value?.json,
      collapsed: event.collapsed,
      source: Self.source(of: event.origin),
      at: { timeText.append(to: &$0) },
      attempt: event.attempt,
      reason: event.reason,
      to: &output
    )
  }

  /// Appends the object of an `accepted` of which nothing else is to be said, for who asked.
  mutating func append(
    _ accepted: borrowing HeldEvents.Accepted,
    key: String,
    to output: inout [UInt8]
  ) {
    let (number, acceptedAt) = (accepted.number, accepted.acceptedAt)
    timeText.set(wallMilliseconds(at: acceptedAt))
    let given = accepted.origin?.id
    EventText.append(
      id: { appendID(given, number: number, acceptedAt: acceptedAt, to: &$0) },
      key: key,
      phase: .accepted,
      value: accepted.value.json,
      collapsed: 0,
      source: Self.source(of: accepted.origin),
      at: { timeText.append(to: &$0) },
      attempt: 1,
      reason: nil,
      to: &output
    )
  }

  /// The event of a request that was refused before it concerned any command.
  func rejection(
    of request: ControlRequest,
    value: JSONValue?,
    reason: String,
    at now: Moment,
    number: UInt64
  ) -> EventObject {
    EventObject(
      id: request.id ?? ulid(at: now, number: number),
      key: request.key,
      phase: .rejected,
      value: value,
      source: request.source ?? "socket",
      at: WallClock.text(milliseconds: wallMilliseconds(at: now)),
      reason: reason
    )
  }

  /// The event of a message that was refused before it concerned any command.
  func rejection(
    key: String,
    source: String?,
    reason: String,
    at now: Moment,
    number: UInt64
  ) -> EventObject {
    EventObject(
      id: ulid(at: now, number: number),
      key: key,
      phase: .rejected,
      value: nil,
      source: source,
      at: WallClock.text(milliseconds: wallMilliseconds(at: now)),
      reason: reason
    )
  }

  private func wallMilliseconds(at moment: Moment) -> Int64 {
    wall.milliseconds + Self.milliseconds(from: wall.at, to: moment)
  }

  private static func milliseconds(from start: Moment, to end: Moment) -> Int64 {
    Int64(bitPattern: end.nanoseconds &- start.nanoseconds) / 1_000_000
  }

  /// Only what comes by MQTT may say nothing about where it comes from.
  private static func source(of origin: ChangeOrigin?) -> String? {
    guard let origin else { return "mqtt" }
    return origin.source
  }

  /// The caller's id, else a ULID: 48 bits of time, 16 of the session, 64 of the change's number.
  private func id(of event: CommandEvent) -> String {
    if let given = event.origin?.id { return Self.text(given) }
    return ulid(at: event.acceptedAt, number: event.number)
  }

  private static func text(_ given: JSONValue) -> String {
    if case .string(let text) = given { text } else { JSONWriter.text(given) }
  }

  /// The caller's id as it was given, else the gateway's.
  func identifier(of number: UInt64, acceptedAt: Moment, origin: ChangeOrigin?) -> JSONValue {
    origin?.id ?? .string(ulid(at: acceptedAt, number: number))
  }

  private func appendID(
    _ given: JSONValue?,
    number: UInt64,
    acceptedAt: Moment,
    to output: inout [UInt8]
  ) {
    if let given { return JSONWriter.append(given, to: &output) }
    output.append(UInt8(ascii: "\""))
    CrockfordText.append(high: high(at: acceptedAt), low: number, to: &output)
    output.append(UInt8(ascii: "\""))
  }

  private func ulid(at moment: Moment, number: UInt64) -> String {
    CrockfordText.of(high: high(at: moment), low: number)
  }

  /// The upper half of a ULID: 48 bits of time, 16 of the session.
  private func high(at moment: Moment) -> UInt64 {
    let life = Self.milliseconds(from: monotonicStart, to: moment)
    let milliseconds = UInt64(max(0, wallStart + life))
    return (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | UInt64(session)
  }
}

/// Crockford's base 32 of 128 bits: 26 characters, sorted as the number is.
enum CrockfordText {
  static func of(high: UInt64, low: UInt64) -> String {
    var text: [UInt8] = []
    append(high: high, low: low, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the characters.
  static func append(high: UInt64, low: UInt64, to output: inout [UInt8]) {
    var characters = InlineArray<26, UInt8>(repeating: 0)
    var (high, low) = (high, low)
    for position in stride(from: 25, through: 0, by: -1) {
      characters[position] = unsafe alphabet.utf8Start[Int(low & 31)]
      low = low >> 5 | high << 59
      high >>= 5
    }
    unsafe characters.span.withUnsafeBufferPointer { unsafe output.append(contentsOf: $0) }
  }

  /// The digits, then the letters without I, L, O and U.
  private static var alphabet: StaticString { "0123456789ABCDEFGHJKMNPQRSTVWXYZ" }
}

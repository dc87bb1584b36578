// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
import GatewayCore
import JSON
import LastOut
import Operations
import Values

/// Encodes events for every surface: numbers become identifiers, and moments become times of day.
struct EventEncoder {
  private let identifiers: CommandIdentifiers
  /// This member's name in a cluster.
  private let gateway: String?
  /// The time of day when it was last read, and that moment.
  private var wall: (milliseconds: Int64, at: Moment)
  private var timestamp = TimestampCache()
  /// The values of rejected events by number, where they are no valid ``Value``.
  private var rejectedValues: [UInt64: JSONValue] = [:]

  /// Ties the monotonic clock to the wall clock: `wallMilliseconds` since 1970 at `now`; `gateway`
  /// is this member's name in a cluster.
  init(
    _ identifiers: CommandIdentifiers,
    gateway: String? = nil,
    wallMilliseconds: Int64,
    now: Moment
  ) {
    self.identifiers = identifiers
    self.gateway = gateway
    wall = (wallMilliseconds, now)
  }

  /// Ties the clocks again: the wall clock may be set, and runs while the machine sleeps.
  mutating func tie(wallMilliseconds: Int64, now: Moment) {
    wall = (wallMilliseconds, now)
  }

  /// Whether events wait whose value only ``object(_:key:)`` shows.
  var hasRejectedValues: Bool { !rejectedValues.isEmpty }

  /// Keeps what a rejected event shows as its value until the event is delivered.
  mutating func keepRejectedValue(_ value: JSONValue, ofEvent number: UInt64) {
    rejectedValues[number] = value
  }

  mutating func forgetRejectedValue(of event: CommandEvent) {
    if !rejectedValues.isEmpty { rejectedValues[event.number] = nil }
  }

  /// The event as an object, for the surfaces that need its members.
  func object(_ event: CommandEvent, key: String) -> EventObject {
    let id = id(event.origin, number: event.number, acceptedAt: event.acceptedAt)
    var object = object(id, key, event.phase, event.origin, at: event.at)
    object.value = rejectedValue(of: event) ?? event.value?.json
    object.collapsed = event.collapsed
    object.attempt = event.attempt
    object.reason = event.reason
    return object
  }

  /// A command of the history as an event: its last phase.
  func object(_ entry: CommandHistory.Entry, key: String) -> EventObject {
    let id = id(entry.origin, number: entry.number, acceptedAt: entry.acceptedAt)
    var object = object(id, key, entry.phase, entry.origin, at: entry.at)
    object.value = entry.value
    object.collapsed = entry.collapsed
    object.attempt = entry.attempt
    object.reason = entry.reason
    return object
  }

  /// What every event of a command has: who asked, when, and which member of a cluster says so.
  private func object(
    _ id: String,
    _ key: String,
    _ phase: Phase,
    _ origin: ChangeOrigin?,
    at moment: Moment
  ) -> EventObject {
    var object = EventObject(id: id, key: key, phase: phase, value: nil, at: timeText(moment))
    object.source = Self.source(of: origin)
    object.group = origin?.group?.name
    object.gateway = gateway
    object.by = origin?.by
    return object
  }

  /// Appends the event's JSON text.
  ///
  /// The requester's identifier appears as the requester wrote it; `withTextID` makes it a string,
  /// for all other readers.
  mutating func append(
    _ event: borrowing CommandEvent,
    key: String,
    withTextID: Bool = false,
    to output: inout [UInt8]
  ) {
    let milliseconds = wallMilliseconds(at: event.at)
    timestamp.set(milliseconds)
    let given = event.origin?.id.map { withTextID ? .string(StatePayload.word($0)) : $0 }
    let number = event.number
    let acceptedAt = event.acceptedAt
    EventText.append(
      id: { appendID(given, number: number, acceptedAt: acceptedAt, to: &$0) },
      key: key,
      phase: event.phase,
      value: event.value?.json,
      collapsed: event.collapsed,
      source: Self.source(of: event.origin),
      at: { timestamp.append(to: &$0) },
      attempt: event.attempt,
      reason: event.reason,
      group: event.origin?.group?.name,
      gateway: gateway,
      by: event.origin?.by,
      to: &output
    )
  }

  /// The event of a request that was rejected before it reached a command.
  func rejection(
    of request: ControlRequest,
    value: JSONValue?,
    reason: String,
    at now: Moment,
    number: UInt64
  ) -> EventObject {
    var object = rejection(
      key: request.key,
      source: request.source ?? "socket",
      reason: reason,
      at: now,
      number: number
    )
    object.id = request.id ?? object.id
    object.value = value
    object.by = request.by
    return object
  }

  /// The event of a message that was rejected before it reached a command.
  func rejection(
    key: String,
    source: String?,
    reason: String,
    at now: Moment,
    number: UInt64
  ) -> EventObject {
    var object = EventObject(
      id: identifiers.ulid(of: number, at: now),
      key: key,
      phase: .rejected,
      value: nil,
      source: source,
      at: timeText(now),
      reason: reason
    )
    object.gateway = gateway
    return object
  }

  private func rejectedValue(of event: CommandEvent) -> JSONValue? {
    rejectedValues.isEmpty ? nil : rejectedValues[event.number]
  }

  /// The time of a moment, in milliseconds since 1970.
  func wallMilliseconds(at moment: Moment) -> Int64 {
    wall.milliseconds + Int64(wall.at.milliseconds(to: moment))
  }

  private func timeText(_ moment: Moment) -> String {
    WallClock.text(milliseconds: wallMilliseconds(at: moment))
  }

  /// Only changes received by MQTT have no origin.
  private static func source(of origin: ChangeOrigin?) -> String? {
    guard let origin else { return "mqtt" }
    return origin.source
  }

  /// The requester's identifier, else the command's ULID.
  private func id(_ origin: ChangeOrigin?, number: UInt64, acceptedAt: Moment) -> String {
    origin?.id.map(StatePayload.word) ?? identifiers.ulid(of: number, at: acceptedAt)
  }

  private func appendID(
    _ given: JSONValue?,
    number: UInt64,
    acceptedAt: Moment,
    to output: inout [UInt8]
  ) {
    if let given { return JSONWriter.append(given, to: &output) }
    identifiers.append(number, at: acceptedAt, to: &output)
  }
}

/// Caches the JSON text of the newest event's timestamp.
///
/// Many events share a millisecond and most share a second, which saves the calendar arithmetic.
struct TimestampCache {
  private var milliseconds = Int64.min
  private var bytes: [UInt8] = []

  /// Makes it the timestamp of `milliseconds` since 1970.
  mutating func set(_ milliseconds: Int64) {
    guard milliseconds != self.milliseconds else { return }
    let isSameSecond = milliseconds > 0 && milliseconds / 1000 == self.milliseconds / 1000
    self.milliseconds = milliseconds
    guard isSameSecond else {
      bytes = [UInt8(ascii: "\"")]
      bytes += WallClock.text(milliseconds: milliseconds).utf8
      bytes.append(UInt8(ascii: "\""))
      return
    }
    // Three digits stand before the Z and the quote.
    var rest = milliseconds % 1000
    for place in stride(from: bytes.count - 3, to: bytes.count - 6, by: -1) {
      bytes[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
      rest /= 10
    }
  }

  func append(to output: inout [UInt8]) { output.append(contentsOf: bytes) }
}

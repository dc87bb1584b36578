// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import Control
import Devices
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
      // Only what comes by MQTT may say nothing about where it comes from.
      source: event.origin == nil ? "mqtt" : event.origin?.source,
      at: WallClock.text(milliseconds: wallMilliseconds(at: event.at)),
      attempt: event.attempt,
      reason: event.reason
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
    wall.milliseconds + wall.at.duration(to: moment).wholeNanoseconds / 1_000_000
  }

  /// The caller's id, else a ULID: 48 bits of time, 16 of the session, 64 of the change's number.
  private func id(of event: CommandEvent) -> String {
    switch event.origin?.id {
    case .string(let given): return given
    case .some(let given): return JSONWriter.text(given)
    case nil: break
    }
    return ulid(at: event.acceptedAt, number: event.number)
  }

  /// The caller's id as it was given, else the gateway's.
  func identifier(of event: CommandEvent) -> JSONValue {
    event.origin?.id ?? .string(ulid(at: event.acceptedAt, number: event.number))
  }

  private func ulid(at moment: Moment, number: UInt64) -> String {
    let life = monotonicStart.duration(to: moment).wholeNanoseconds / 1_000_000
    let milliseconds = UInt64(max(0, wallStart + life))
    let high = (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | UInt64(session)
    return CrockfordText.of(high: high, low: number)
  }
}

/// Crockford's base 32 of 128 bits: 26 characters, sorted as the number is.
enum CrockfordText {
  static func of(high: UInt64, low: UInt64) -> String {
    unsafe String(unsafeUninitializedCapacity: 26) { characters in
      var high = high
      var low = low
      for position in stride(from: 25, through: 0, by: -1) {
        unsafe characters.initializeElement(at: position, to: digit(UInt8(low & 31)))
        low = low >> 5 | high << 59
        high >>= 5
      }
      return 26
    }
  }

  /// The digits, then the letters without I, L, O and U.
  private static func digit(_ number: UInt8) -> UInt8 {
    switch number {
    case ..<10: number + 48
    case ..<18: number + 55
    case ..<20: number + 56
    case ..<22: number + 57
    case ..<27: number + 58
    default: number + 59
    }
  }
}

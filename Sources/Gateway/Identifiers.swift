// Settle
// SPDX-License-Identifier: Apache-2.0

import Commands
import LastOut
import Operations

/// Turns what the state machine counts into what people read: ids and wall-clock times.
struct Identifiers {
  private let session: UInt16
  private let wallStart: Int64
  private let monotonicStart: Moment

  /// - Parameters:
  ///   - wallMilliseconds: Milliseconds since 1970 at `now`.
  ///   - session: Tells the ids of two runs of the gateway apart.
  init(wallMilliseconds: Int64, now: Moment, session: UInt16) {
    wallStart = wallMilliseconds
    monotonicStart = now
    self.session = session
  }

  /// Milliseconds since 1970 at a monotonic moment.
  func wallMilliseconds(at moment: Moment) -> Int64 {
    wallStart + monotonicStart.duration(to: moment).wholeNanoseconds / 1_000_000
  }

  /// The caller's id, else a ULID: 48 bits of time, 16 of the session, 64 of the change's number.
  func id(of event: CommandEvent) -> String {
    if let given = event.origin?.id { return given }
    let milliseconds = UInt64(max(0, wallMilliseconds(at: event.acceptedAt)))
    let high = (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | UInt64(session)
    return CrockfordText.of(high: high, low: event.number)
  }
}

/// Crockford's base 32 of 128 bits: 26 characters, sorted as the number is.
enum CrockfordText {
  private static let digits = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ".utf8)

  static func of(high: UInt64, low: UInt64) -> String {
    var high = high
    var low = low
    var characters = [UInt8](repeating: 0, count: 26)
    for position in characters.indices.reversed() {
      characters[position] = digits[Int(low & 31)]
      low = low >> 5 | high << 59
      high >>= 5
    }
    return String(decoding: characters, as: UTF8.self)
  }
}

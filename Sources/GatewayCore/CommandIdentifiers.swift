// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices
package import JSON
package import LastOut

/// The identifiers of commands whose callers gave none: ULIDs of 48 bits of time, 16 bits of the
/// session and 64 bits of the command's number.
package struct CommandIdentifiers: Sendable {
  private let session: UInt16
  private let wallStart: Int64
  private let monotonicStart: Moment

  /// - Parameters:
  ///   - wallMilliseconds: The time of day at `now`, in milliseconds since 1970.
  ///   - now: The moment that `wallMilliseconds` belongs to.
  ///   - session: Tells two runs of the gateway apart.
  package init(wallMilliseconds: Int64, now: Moment, session: UInt16) {
    wallStart = wallMilliseconds
    monotonicStart = now
    self.session = session
  }

  /// The caller's identifier, else the command's ULID.
  package func id(of number: UInt64, acceptedAt: Moment, given: JSONValue?) -> JSONValue {
    given ?? .string(ulid(of: number, at: acceptedAt))
  }

  package func ulid(of number: UInt64, at moment: Moment) -> String {
    CrockfordText.of(high: high(at: moment), low: number)
  }

  /// Appends a ULID in quotes.
  package func append(_ number: UInt64, at moment: Moment, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    CrockfordText.append(high: high(at: moment), low: number, to: &output)
    output.append(UInt8(ascii: "\""))
  }

  /// The upper half of a ULID.
  private func high(at moment: Moment) -> UInt64 {
    let elapsed = Int64(bitPattern: moment.nanoseconds &- monotonicStart.nanoseconds) / 1_000_000
    let milliseconds = UInt64(max(0, wallStart + elapsed))
    return (milliseconds & 0xFFFF_FFFF_FFFF) << 16 | UInt64(session)
  }
}

/// Crockford's base 32 of 128 bits: 26 characters that sort as the number does.
package enum CrockfordText {
  package static func of(high: UInt64, low: UInt64) -> String {
    var text: [UInt8] = []
    append(high: high, low: low, to: &text)
    return String(decoding: text, as: UTF8.self)
  }

  /// Appends the characters.
  package static func append(high: UInt64, low: UInt64, to output: inout [UInt8]) {
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

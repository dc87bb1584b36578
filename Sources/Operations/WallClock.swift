// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc

/// The wall-clock time in events and the log.
package enum WallClock {
  /// Milliseconds since 1970-01-01 00:00 UTC.
  package static func milliseconds() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The current time, such as `2026-11-21T08:00:00.123Z`.
  package static func text() -> String {
    text(milliseconds: milliseconds())
  }

  /// A time as ISO 8601 text in UTC, 24 characters; clamped to the years 0 to
  /// 9999.
  package static func text(milliseconds: Int64) -> String {
    let clamped = min(max(milliseconds, -62_167_219_200_000), 253_402_300_799_999)
    let (days, inDay) = clamped.flooredDivision(by: 86_400_000)
    let date = civil(day: days)
    return unsafe String(unsafeUninitializedCapacity: 24) { buffer in
      var writer = unsafe DigitWriter(buffer: buffer)
      writer.put(date.year, digits: 4, then: "-")
      writer.put(date.month, digits: 2, then: "-")
      writer.put(date.day, digits: 2, then: "T")
      writer.put(inDay / 3_600_000, digits: 2, then: ":")
      writer.put(inDay / 60_000 % 60, digits: 2, then: ":")
      writer.put(inDay / 1000 % 60, digits: 2, then: ".")
      writer.put(inDay % 1000, digits: 3, then: "Z")
      return writer.count
    }
  }

  /// The date of a day counted from 1970-01-01, in the Gregorian calendar.
  private static func civil(day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    // Here years start in March, so that the leap day is the last day of a year; eras have 400
    // years.
    let (era, dayOfEra) = (day + 719_468).flooredDivision(by: 146_097)
    let leapDays = dayOfEra / 1460 - dayOfEra / 36_524 + dayOfEra / 146_096
    let yearOfEra = (dayOfEra - leapDays) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted < 10 ? shifted + 3 : shifted - 9
    return (
      year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month: month,
      day: dayOfYear - (153 * shifted + 2) / 5 + 1
    )
  }
}

/// Writes fixed-width decimal numbers.
@safe private struct DigitWriter {
  private let buffer: UnsafeMutableBufferPointer<UInt8>
  private(set) var count = 0

  init(buffer: UnsafeMutableBufferPointer<UInt8>) {
    unsafe self.buffer = buffer
  }

  mutating func put(_ number: Int64, digits: Int, then separator: Unicode.Scalar) {
    var rest = number
    for position in stride(from: count + digits - 1, through: count, by: -1) {
      unsafe buffer[position] = UInt8(truncatingIfNeeded: 48 + rest % 10)
      rest /= 10
    }
    count += digits
    unsafe buffer[count] = UInt8(ascii: separator)
    count += 1
  }
}

extension Int64 {
  /// Quotient rounded toward minus infinity, and the remainder that is never negative.
  fileprivate func flooredDivision(by divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

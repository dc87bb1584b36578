// Settle
// SPDX-License-Identifier: Apache-2.0

/// Wall-clock times as events carry them: `2026-11-21T08:00:00.123Z`.
package enum Timestamp {
  /// The text of a moment given in milliseconds since 1970, for years 0 to 9999.
  package static func text(millisecondsSince1970 moment: Int64) -> String {
    let day = floorDivide(moment, 86_400_000)
    let time = moment - day * 86_400_000
    let date = civilDate(ofDay: day)
    return "\(padded(date.year, 4))-\(padded(date.month, 2))-\(padded(date.day, 2))T"
      + "\(padded(time / 3_600_000, 2)):\(padded(time / 60_000 % 60, 2)):"
      + "\(padded(time / 1000 % 60, 2)).\(padded(time % 1000, 3))Z"
  }

  /// The Gregorian date of a day counted from 1970-01-01, by whole eras of 400 years.
  private static func civilDate(ofDay day: Int64) -> (year: Int64, month: Int64, day: Int64) {
    let shifted = day + 719_468  // Days since 0000-03-01.
    let era = floorDivide(shifted, 146_097)
    let dayOfEra = shifted - era * 146_097
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shiftedMonth = (5 * dayOfYear + 2) / 153
    let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
    let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
    return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
  }

  private static func floorDivide(_ number: Int64, _ divisor: Int64) -> Int64 {
    number / divisor - (number % divisor < 0 ? 1 : 0)
  }

  private static func padded(_ number: Int64, _ width: Int) -> String {
    let digits = String(number)
    return String(repeating: "0", count: max(0, width - digits.utf8.count)) + digits
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The times in the engine's answers, such as `2026-11-25T09:56:13.511620012Z`.
enum EngineTime {
  /// Nanoseconds since 1970; `nil` for anything else.
  ///
  /// Source of the calendar: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms",
  /// days_from_civil.
  static func nanoseconds(_ text: String) -> Int64? {
    let bytes = Array(text.utf8)
    guard bytes.count >= 20, bytes.last == UInt8(ascii: "Z"), let year = number(bytes[0..<4]),
      let month = number(bytes[5..<7]), let day = number(bytes[8..<10]),
      let hour = number(bytes[11..<13]), let minute = number(bytes[14..<16]),
      let second = number(bytes[17..<19]), (1...12).contains(month)
    else { return nil }
    var fraction: Int64 = 0
    let digits = bytes[19..<bytes.count - 1]
    if digits.first == UInt8(ascii: ".") {
      guard digits.count <= 10, let read = number(digits.dropFirst()) else { return nil }
      fraction = read
      for _ in digits.count..<10 { fraction *= 10 }
    } else if !digits.isEmpty {
      return nil
    }
    let adjusted = month <= 2 ? year - 1 : year
    let era = adjusted / 400
    let yearOfEra = adjusted - era * 400
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    let dayOfEra = yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear
    let days = era * 146_097 + dayOfEra - 719_468
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000_000 + fraction
  }

  private static func number(_ digits: ArraySlice<UInt8>) -> Int64? {
    guard !digits.isEmpty else { return nil }
    var result: Int64 = 0
    for digit in digits {
      guard (0x30...0x39).contains(digit) else { return nil }
      result = result * 10 + Int64(digit - 0x30)
    }
    return result
  }
}

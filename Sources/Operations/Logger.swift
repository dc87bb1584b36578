// Settle
// SPDX-License-Identifier: Apache-2.0

import CUV
import Glibc
package import LastOut

/// Writes one line per event to standard error: a constant message and facts as metadata.
///
/// `2026-11-21T08:00:00.123Z warning Broker lost reason="connection reset"`; under systemd a
/// priority such as `<4>` instead of time and level. Control characters in facts are escaped, so
/// that one event is always one line.
package struct Logger: Sendable {
  /// The severity of an event.
  package enum Level: Int, Sendable, Comparable, CaseIterable {
    case debug, info, warning, error
    package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }

  /// A log that drops everything.
  package static let silent = Logger(minimum: nil, isJournal: false, write: { _ in })

  /// The lowest level that is written; `nil` for none.
  private let minimum: Level?
  private let isJournal: Bool
  private let write: @Sendable (String) -> Void

  /// Creates a log of the events from `level` up.
  ///
  /// - Parameters:
  ///   - level: The lowest level that is written.
  ///   - write: Receives each line, without a line break; default: standard error.
  package init(level: Level = .info, write: (@Sendable (String) -> Void)? = nil) {
    if let write {
      self.init(minimum: level, isJournal: false, write: write)
    } else {
      let sink = StandardErrorSink.shared
      self.init(minimum: level, isJournal: sink.isJournal, write: { sink.write($0) })
    }
  }

  init(minimum: Level?, isJournal: Bool, write: @escaping @Sendable (String) -> Void) {
    self.minimum = minimum
    self.isJournal = isJournal
    self.write = write
  }

  /// The same log for a part of the program of which only events from `level` up matter.
  package func raised(to level: Level) -> Logger {
    Logger(minimum: minimum.map { max($0, level) }, isJournal: isJournal, write: write)
  }

  /// Whether events of `level` are written; check it before collecting expensive metadata.
  package func writes(_ level: Level) -> Bool {
    guard let minimum else { return false }
    return level >= minimum
  }

  package func debug(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) {
    log(.debug, message, facts)
  }

  package func info(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) {
    log(.info, message, facts)
  }

  package func warning(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) {
    log(.warning, message, facts)
  }

  package func error(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) {
    log(.error, message, facts)
  }

  package func log(
    _ level: Level,
    _ message: StaticString,
    _ facts: KeyValuePairs<String, String>
  ) {
    guard writes(level) else { return }
    var line = isJournal ? level.journalPriority : "\(WallClock.text()) \(level) "
    line += "\(message)"
    for (key, value) in facts {
      line += " \(key)="
      Self.append(value, to: &line)
    }
    write(line)
  }

  /// Appends a value: unquoted if it is one plain word, otherwise quoted, with line breaks and
  /// quotes escaped.
  private static func append(_ value: String, to line: inout String) {
    let isPlain = value.unicodeScalars.allSatisfy {
      $0.value > 0x20 && $0.value != 0x7F && $0 != "\"" && $0 != "=" && $0 != "\\"
        && !isLineBreaking($0)
    }
    if isPlain && !value.isEmpty {
      line += value
      return
    }
    line += "\""
    for scalar in value.unicodeScalars {
      switch scalar {
      case "\"": line += "\\\""
      case "\\": line += "\\\\"
      case "\n": line += "\\n"
      case "\r": line += "\\r"
      case "\t": line += "\\t"
      case _ where scalar.value < 0x20 || isLineBreaking(scalar):
        line += "\\u{\(String(scalar.value, radix: 16))}"
      default: line.unicodeScalars.append(scalar)
      }
    }
    line += "\""
  }

  /// DEL, the second range of control characters, and the two Unicode line separators.
  private static func isLineBreaking(_ scalar: Unicode.Scalar) -> Bool {
    (0x7F...0x9F).contains(scalar.value) || scalar.value == 0x2028 || scalar.value == 0x2029
  }
}

extension Logger.Level {
  /// The priority prefix of a line for systemd.
  fileprivate var journalPriority: String {
    switch self {
    case .debug: "<7>"
    case .info: "<6>"
    case .warning: "<4>"
    case .error: "<3>"
    }
  }
}

/// Writes lines to standard error without waiting long for the reader.
///
/// A reader that hangs costs 50 ms once; then lines are dropped at once until it reads again, and
/// the next line reports how many were lost.
final class StandardErrorSink: Sendable {
  static let shared = StandardErrorSink(descriptor: 2)

  /// Longer lines are truncated: a pipe that polls as writable accepts this much without blocking.
  static let longestLine = 4096

  /// Whether standard error goes to systemd's journal.
  let isJournal: Bool
  private let descriptor: Int32
  private let dropped = Locked(0)

  init(descriptor: Int32) {
    self.descriptor = descriptor
    isJournal = Self.isJournal(descriptor)
  }

  func write(_ line: String) {
    // Locked while writing, so that two threads cannot mix their lines; the wait below is bounded.
    dropped.withLock { dropped in
      var text = line
      if dropped > 0 { text += " dropped_lines=\(dropped)" }
      dropped = put(text, patience: dropped > 0 ? 0 : 50) ? 0 : dropped + 1
    }
  }

  /// Writes one line; `false` if the reader did not accept it within `patience` milliseconds.
  private func put(_ line: String, patience: Int32) -> Bool {
    var bytes = Array(line.utf8.prefix(Self.longestLine - 1))
    bytes.append(UInt8(ascii: "\n"))
    var start = 0
    while start < bytes.count {
      var request = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      guard unsafe poll(&request, 1, patience) > 0, request.revents & Int16(POLLOUT) != 0 else {
        return false
      }
      let count = unsafe bytes[start...].withUnsafeBytes {
        unsafe Glibc.write(descriptor, $0.baseAddress, $0.count)
      }
      if count < 0 && errno != EINTR && errno != EAGAIN { return false }
      start += max(0, count)
    }
    return true
  }

  /// Whether a descriptor is the socket of systemd's journal.
  ///
  /// `JOURNAL_STREAM` has its device and inode. The variable is inherited, so it only counts if
  /// standard error still is that socket.
  private static func isJournal(_ descriptor: Int32) -> Bool {
    guard let variable = Environment["JOURNAL_STREAM"] else { return false }
    var status = stat()
    guard unsafe fstat(descriptor, &status) == 0 else { return false }
    return variable == "\(status.st_dev):\(status.st_ino)"
  }
}

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

/// Decides when a repeated event is logged: at once, then less and less often.
///
/// The time between two lines doubles up to a limit.
package struct LogPace: Sendable {
  private let range: ClosedRange<Duration>
  private var distance: Duration
  private var next: Moment?
  /// The number of events since the last line.
  package private(set) var unlogged: UInt64 = 0

  package init(_ range: ClosedRange<Duration> = .seconds(10)...(.seconds(600))) {
    self.range = range
    distance = range.lowerBound
  }

  /// Records `count` events.
  ///
  /// - Returns: The events since the last line, these included, if a line is due.
  package mutating func record(_ count: UInt64 = 1, at now: Moment) -> UInt64? {
    unlogged += count
    if let next {
      guard next <= now else { return nil }
      distance = min(distance * 2, range.upperBound)
    }
    next = now.advanced(by: distance)
    defer { unlogged = 0 }
    return unlogged
  }

  /// Starts over: the next event is logged at once.
  ///
  /// - Returns: The events since the last line.
  @discardableResult
  package mutating func end() -> UInt64 {
    defer { self = LogPace(range) }
    return unlogged
  }
}

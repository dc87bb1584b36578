// Settle
// SPDX-License-Identifier: Apache-2.0

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

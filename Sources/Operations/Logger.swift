// Settle
// SPDX-License-Identifier: Apache-2.0

/// Writes one line per event to standard error: a constant message and facts as metadata.
package struct Logger: Sendable {
  package enum Level: Int, Sendable, Comparable {
    case debug, info, warning, error
    package static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
  }
  package init(level: Level = .info, write: (@Sendable (String) -> Void)? = nil) {
    fatalError("skeleton")
  }
  /// Drops everything.
  package static let silent: Logger = { fatalError("skeleton") }()
  package func debug(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) { fatalError("skeleton") }
  package func info(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) { fatalError("skeleton") }
  package func warning(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) { fatalError("skeleton") }
  package func error(_ message: StaticString, _ facts: KeyValuePairs<String, String> = [:]) { fatalError("skeleton") }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A place in a file.
struct SourcePosition: Hashable, Sendable {
  var file: String
  /// Counted from one.
  var line: Int
  /// In characters, counted from one.
  var column: Int

  /// The beginning of a file, for what concerns all of it.
  static func start(of file: String) -> SourcePosition {
    SourcePosition(file: file, line: 1, column: 1)
  }

  /// `file:line:column`.
  var text: String { "\(file):\(line):\(column)" }
}

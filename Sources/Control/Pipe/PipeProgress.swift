// Settle
// SPDX-License-Identifier: Apache-2.0

/// The line that shows a person how far a pipe has come, written over and over.
struct PipeProgress {
  private static let clear = "\r\u{1B}[K"
  private var hasWritten = false

  /// The text to write for the state of `session`.
  mutating func text(for session: borrowing PipeSession) -> String {
    hasWritten = true
    return Self.clear + "\(session.lineCount) lines: \(session.tally.description), "
      + "\(session.openChanges) under way"
  }

  /// What takes the line away again; `nil` where there is none.
  var ending: String? { hasWritten ? Self.clear : nil }
}

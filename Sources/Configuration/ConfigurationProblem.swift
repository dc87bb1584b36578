// Settle
// SPDX-License-Identifier: Apache-2.0

package import JSON
internal import Values

/// One mistake in a configuration file: its position, a message and a suggestion.
package struct ConfigurationProblem: Error, Hashable, Sendable {
  /// A file, a folder, or a variable such as `$SETTLE_DEVICES`.
  package var file: String
  /// Counted from one; 0 for a mistake that concerns all of the file.
  package var line: Int
  /// In characters, counted from one; 0 without a line.
  package var column: Int
  package var message: String
  package var suggestion: String?

  package init(
    file: String,
    line: Int,
    column: Int,
    message: String,
    suggestion: String? = nil
  ) {
    self.file = file
    self.line = line
    self.column = column
    self.message = message
    self.suggestion = suggestion
  }
}

extension ConfigurationProblem: CustomStringConvertible {
  /// `file:line:column: message`, or `file: message`, followed by the suggestion.
  ///
  /// Control characters are escaped: what a file says does not control the terminal.
  package var description: String {
    let question = suggestion.map { "; did you mean '\($0)'?" } ?? ""
    let position = line == 0 ? "" : ":\(line):\(column)"
    return Excerpt.visible("\(file)\(position): \(message)\(question)")
  }
}

extension ConfigurationProblem {
  /// The problem as one JSON object; `severity` is `error` or `warning`.
  ///
  /// `line` and `column` are `null` for a mistake that concerns all of the file.
  package func json(severity: String) -> JSONValue {
    .object([
      "file": .string(file),
      "line": line == 0 ? .null : .integer(Int64(line)),
      "column": line == 0 ? .null : .integer(Int64(column)),
      "severity": .string(severity), "message": .string(message),
      "suggestion": suggestion.map { .string($0) } ?? .null,
    ])
  }
}

/// All mistakes of one load, sorted by file and line.
package struct ConfigurationFailure: Error, Sendable {
  package var problems: [ConfigurationProblem]

  package init(problems: [ConfigurationProblem]) {
    self.problems = problems
  }
}

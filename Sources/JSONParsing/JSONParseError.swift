// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a text is not JSON, and where.
///
/// Lines and columns count from 1; columns count characters, and name the last one that was read.
package struct JSONParseError: Error, Hashable, Sendable, CustomStringConvertible {
  package let message: String
  package let line: Int
  package let column: Int

  package init(message: String, line: Int, column: Int) {
    self.message = message
    self.line = line
    self.column = column
  }

  package var description: String { "\(message) (line \(line), column \(column))" }
}

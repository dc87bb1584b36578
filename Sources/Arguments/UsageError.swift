// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a command line is wrong; the exit code is 64.
package struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The command as it was called, such as `settle set`.
  package let path: String
  /// One sentence without a full stop: what was found, and what is allowed.
  package let message: String

  package init(path: String, message: String) {
    self.path = path
    self.message = message
  }

  /// The message and where to find help, without the path.
  package var advice: String { "\(message)\nSee \"\(path) --help\"." }

  /// Two lines fit for standard error.
  package var description: String { "\(path): \(advice)" }
}

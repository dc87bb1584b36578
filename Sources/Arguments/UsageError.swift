// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a command line was not understood; worth exit code 64.
package struct UsageError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was called, as `settle set`.
  package let path: String
  /// One sentence without a full stop: what was found, and what is allowed.
  package let message: String

  package init(path: String, message: String) {
    self.path = path
    self.message = message
  }

  /// The message and where to look, without the path in front.
  package var advice: String { "\(message)\nSee \"\(path) --help\"." }

  /// Two lines fit for standard error.
  package var description: String { "\(path): \(advice)" }
}

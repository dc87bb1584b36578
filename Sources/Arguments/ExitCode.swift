// Settle
// SPDX-License-Identifier: Apache-2.0

/// The exit codes of the programs, after sysexits.
package enum ExitCode: Int32, Sendable {
  case done = 0
  /// The command failed, expired, was superseded or cancelled; something was not sent.
  case failed = 1
  case usage = 64
  /// A bad value, an unknown key, a bad input line, or a wait for a key that nothing can confirm.
  case badInput = 65
  /// The input cannot be opened or read.
  case noInput = 66
  /// No gateway answers at the socket, or another service is unavailable.
  case unavailable = 69
  /// `--timeout` passed.
  case timedOut = 75
  case badConfiguration = 78
}

extension ExitCode {
  /// The meaning of each, for the manual.
  package static let meanings: [(ExitCode, String)] = [
    (.done, "Done; also when nothing needed to be sent."),
    (.failed, "The command failed, expired, was superseded or cancelled; something was not sent."),
    (.usage, "The command line is wrong."),
    (.badInput, "A bad value, an unknown key, a bad input line, or nothing that can confirm."),
    (.noInput, "The input cannot be opened or read."),
    (.unavailable, "No gateway answers at the socket, or another service is unavailable."),
    (.timedOut, "--timeout passed."),
    (.badConfiguration, "The configuration has mistakes."),
  ]
}

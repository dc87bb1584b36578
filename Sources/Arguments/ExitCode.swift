// Settle
// SPDX-License-Identifier: Apache-2.0

/// What a program ends with, after sysexits.
package enum ExitCode: Int32, Sendable {
  case done = 0
  /// The command failed, expired, was superseded or cancelled; something was not sent.
  case failed = 1
  case usage = 64
  /// A bad value, an unknown key, a line that cannot be used, or a wait for what cannot be confirmed.
  case badInput = 65
  /// The input cannot be opened or read.
  case noInput = 66
  /// No gateway at the socket, or something else that is needed is not there.
  case unavailable = 69
  /// `--timeout` passed.
  case timedOut = 75
  case badConfiguration = 78
}

extension ExitCode {
  /// What each means, for the manual.
  package static let meanings: [(ExitCode, String)] = [
    (.done, "Done; also when nothing needed to be sent."),
    (.failed, "The command failed, expired, was superseded or cancelled; something was not sent."),
    (.usage, "The command line is wrong."),
    (.badInput, "A bad value, an unknown key, a bad input line, or nothing that can confirm."),
    (.noInput, "The input cannot be opened or read."),
    (.unavailable, "No gateway answers at the socket, or something else is not there."),
    (.timedOut, "--timeout passed."),
    (.badConfiguration, "The configuration has mistakes."),
  ]
}

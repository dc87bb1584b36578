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

// Settle
// SPDX-License-Identifier: Apache-2.0

/// What `settle` ends with, after sysexits (SPEC section 6).
enum ExitCode: Int32 {
  case done = 0
  /// The command failed, expired, was superseded or cancelled.
  case failed = 1
  case usage = 64
  /// A bad value, an unknown key, or a wait for what cannot be confirmed.
  case badInput = 65
  /// No gateway at the socket.
  case unavailable = 69
  /// `--timeout` passed.
  case timedOut = 75
  case badConfiguration = 78
}

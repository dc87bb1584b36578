// Settle
// SPDX-License-Identifier: Apache-2.0

/// What `settled` ends with, after sysexits.
enum ExitCode: Int32 {
  case done = 0
  case failed = 1
  case usage = 64
  /// A line of the input could not be used.
  case badInput = 65
  /// The input could not be opened or read.
  case noInput = 66
  /// What the command needs is not there.
  case unavailable = 69
  case badConfiguration = 78
}

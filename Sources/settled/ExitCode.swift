// Settle
// SPDX-License-Identifier: Apache-2.0

/// What `settled` ends with, after sysexits.
enum ExitCode {
  static let success: Int32 = 0
  static let failure: Int32 = 1
  static let usage: Int32 = 64
  /// A line of the input could not be used.
  static let badInput: Int32 = 65
  /// The input could not be opened or read.
  static let noInput: Int32 = 66
  /// What the command needs is not there.
  static let noGateway: Int32 = 69
  static let configuration: Int32 = 78
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability

/// Why a journal was not opened.
enum JournalProblem: Error {
  /// It must not be used; only a person can change that.
  case refused(JournalRefusal)
  /// It cannot be used at the moment.
  case fault(JournalFault)

  /// Runs `body`, whose failure is a fault.
  static func faults<Result: ~Copyable>(
    _ body: () throws(JournalFault) -> Result
  ) throws(JournalProblem) -> Result {
    do throws(JournalFault) { return try body() } catch { throw .fault(error) }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Durability

/// A SQLite call that failed.
struct SQLiteError: Error {
  var call: String
  /// SQLite's extended code.
  var code: Int32
  var message: String

  /// The code without its extension.
  var primaryCode: Int32 { code & 0xFF }

  var fault: JournalFault {
    switch primaryCode {
    case SQLITE_FULL: .diskFull
    case SQLITE_READONLY: .readOnly
    case SQLITE_CORRUPT, SQLITE_NOTADB: .damaged(message)
    default: .failed(call: call, reason: "\(message) (SQLite \(code))")
    }
  }
}

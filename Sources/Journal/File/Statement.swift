// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CSQLite

/// Owns one prepared SQLite statement; used by the connection's thread only.
@safe struct Statement: ~Copyable, @unchecked Sendable {
  // Moves with its connection, which one thread uses at a time.
  private let statement: OpaquePointer
  /// Lives at least as long as the statement: closing it waits for its statements.
  private let connection: OpaquePointer

  init(_ statement: OpaquePointer, connection: OpaquePointer) {
    unsafe self.statement = statement
    unsafe self.connection = connection
  }

  deinit {
    unsafe sqlite3_finalize(statement)
  }

  /// Runs to the next row; `false` at the end.
  func step() throws(SQLiteError) -> Bool {
    switch unsafe sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw failure("sqlite3_step", code)
    }
  }

  /// Runs a statement without rows and resets it.
  func run() throws(SQLiteError) {
    defer { unsafe sqlite3_reset(statement) }
    while try step() {}
  }

  func bind(_ place: Int32, text: String) throws(SQLiteError) {
    var text = text
    let code = text.withUTF8 { bytes in
      unsafe settle_bind_text(statement, place, bytes.baseAddress, Int32(bytes.count))
    }
    guard code == SQLITE_OK else { throw failure("sqlite3_bind_text", code) }
  }

  func bind(_ place: Int32, blob: [UInt8]) throws(SQLiteError) {
    let code = unsafe blob.withUnsafeBytes { bytes in
      unsafe settle_bind_blob(statement, place, bytes.baseAddress, Int32(bytes.count))
    }
    guard code == SQLITE_OK else { throw failure("sqlite3_bind_blob", code) }
  }

  func bind(_ place: Int32, integer: Int64) throws(SQLiteError) {
    let code = unsafe sqlite3_bind_int64(statement, place, integer)
    guard code == SQLITE_OK else { throw failure("sqlite3_bind_int64", code) }
  }

  func integer(_ column: Int32) -> Int64 {
    unsafe sqlite3_column_int64(statement, column)
  }

  /// The bytes of a text or blob.
  func bytes(_ column: Int32) -> [UInt8] {
    // The pointer first: asking for it may convert the value and change its length.
    guard let start = unsafe sqlite3_column_blob(statement, column) else { return [] }
    let count = Int(unsafe sqlite3_column_bytes(statement, column))
    return unsafe Array(UnsafeRawBufferPointer(start: start, count: count))
  }

  private func failure(_ call: String, _ code: Int32) -> SQLiteError {
    unsafe SQLiteError(
      call: call,
      code: code,
      message: String(cString: sqlite3_errmsg(connection))
    )
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Durability

/// Owns one SQLite connection; used by one thread at a time.
@safe struct Database: ~Copyable, @unchecked Sendable {
  // A connection may move between threads; its owner is not copyable, so two never use it at once.
  private let connection: OpaquePointer

  /// Opens an existing file for reading and writing, without following a link.
  ///
  /// Closing writes nothing: after an error the file stays as it is.
  /// The corresponding C function is `sqlite3_open_v2`.
  init(_ path: String, vfs: String?) throws(JournalFault) {
    var opened: OpaquePointer?
    let flags =
      SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_PRIVATECACHE
    let code =
      if let vfs {
        unsafe sqlite3_open_v2(path, &opened, flags, vfs)
      } else {
        unsafe sqlite3_open_v2(path, &opened, flags, nil)
      }
    guard code == SQLITE_OK, let connection = unsafe opened else {
      let text =
        if let opened = unsafe opened {
          unsafe String(cString: sqlite3_errmsg(opened))
        } else {
          unsafe String(cString: sqlite3_errstr(code))
        }
      unsafe sqlite3_close_v2(opened)
      throw .sqlite("sqlite3_open_v2", code, text)
    }
    unsafe self.connection = connection
    unsafe sqlite3_extended_result_codes(connection, 1)
    unsafe settle_distrust_schema(connection)
    unsafe settle_persist_wal(connection)
    unsafe settle_no_checkpoint_on_close(connection)
  }

  deinit {
    // Statements still open keep it until they are finalized.
    unsafe sqlite3_close_v2(connection)
  }

  /// Runs statements that return nothing of interest.
  func execute(_ sql: String) throws(JournalFault) {
    let code = unsafe sqlite3_exec(connection, sql, nil, nil, nil)
    guard code == SQLITE_OK else { throw failure(Self.name(sql, of: "sqlite3_exec"), code) }
  }

  func prepare(_ sql: String) throws(JournalFault) -> Statement {
    var statement: OpaquePointer?
    let code = unsafe sqlite3_prepare_v3(
      connection,
      sql,
      Int32(sql.utf8.count),
      UInt32(SQLITE_PREPARE_PERSISTENT),
      &statement,
      nil
    )
    guard code == SQLITE_OK, let statement = unsafe statement else {
      throw failure(Self.name(sql, of: "sqlite3_prepare_v3"), code)
    }
    return unsafe Statement(statement, connection: connection)
  }

  /// The first column of the first row, as text; `nil` without a row.
  func text(_ sql: String) throws(JournalFault) -> String? {
    let statement = try prepare(sql)
    guard try statement.step() else { return nil }
    return String(decoding: statement.bytes(0), as: UTF8.self)
  }

  /// Pages written to the write-ahead log or the file so far.
  var pagesWritten: Int {
    var current: Int32 = 0
    var highest: Int32 = 0
    unsafe sqlite3_db_status(connection, SQLITE_DBSTATUS_CACHE_WRITE, &current, &highest, 0)
    return Int(current)
  }

  /// Copies the whole write-ahead log into the file and syncs both; the log is then reused from its
  /// start.
  ///
  /// The corresponding C function is `sqlite3_wal_checkpoint_v2`.
  func checkpoint() throws(JournalFault) {
    var frames: Int32 = 0
    var copied: Int32 = 0
    let code = unsafe sqlite3_wal_checkpoint_v2(
      connection,
      "main",
      SQLITE_CHECKPOINT_PASSIVE,
      &frames,
      &copied
    )
    guard code == SQLITE_OK else { throw failure("sqlite3_wal_checkpoint_v2", code) }
    guard frames == copied else { throw failure("sqlite3_wal_checkpoint_v2", SQLITE_BUSY) }
  }

  /// The name of a statement in errors: a reason becomes one line of a log and an MQTT property.
  private static func name(_ sql: String, of call: String) -> String {
    sql.contains("\n") ? call : sql
  }

  private func failure(_ call: String, _ code: Int32) -> JournalFault {
    unsafe JournalFault.sqlite(call, code, String(cString: sqlite3_errmsg(connection)))
  }
}

extension JournalFault {
  /// The fault for a call of SQLite that failed with an extended code.
  static func sqlite(_ call: String, _ code: Int32, _ message: String) -> JournalFault {
    switch code & 0xFF {
    case SQLITE_FULL: .diskFull
    case SQLITE_READONLY: .readOnly
    case SQLITE_CORRUPT, SQLITE_NOTADB: .damaged(message)
    default: .failed(call: call, reason: "\(message) (SQLite \(code))")
    }
  }
}

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
  func step() throws(JournalFault) -> Bool {
    switch unsafe sqlite3_step(statement) {
    case SQLITE_ROW: return true
    case SQLITE_DONE: return false
    case let code: throw failure("sqlite3_step", code)
    }
  }

  /// Runs a statement without rows and resets it.
  func run() throws(JournalFault) {
    defer { unsafe sqlite3_reset(statement) }
    while try step() {}
  }

  func bind(_ place: Int32, text: String) throws(JournalFault) {
    var text = text
    let code = text.withUTF8 { bytes in
      unsafe settle_bind_text(statement, place, bytes.baseAddress, Int32(bytes.count))
    }
    guard code == SQLITE_OK else { throw failure("sqlite3_bind_text", code) }
  }

  func bind(_ place: Int32, blob: [UInt8]) throws(JournalFault) {
    let code = unsafe blob.withUnsafeBytes { bytes in
      unsafe settle_bind_blob(statement, place, bytes.baseAddress, Int32(bytes.count))
    }
    guard code == SQLITE_OK else { throw failure("sqlite3_bind_blob", code) }
  }

  func bind(_ place: Int32, integer: Int64) throws(JournalFault) {
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

  private func failure(_ call: String, _ code: Int32) -> JournalFault {
    unsafe JournalFault.sqlite(call, code, String(cString: sqlite3_errmsg(connection)))
  }
}

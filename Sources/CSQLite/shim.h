// Settle
// SPDX-License-Identifier: Apache-2.0

#pragma once

#include <sqlite3.h>

// Variadic functions and cast macros are not imported into Swift.

// Bound values are copied at once, so that the caller's memory need not outlive the call.
static inline int settle_bind_text(sqlite3_stmt *statement, int place, const void *bytes, int count) {
  return sqlite3_bind_text(statement, place, bytes ? bytes : "", count, SQLITE_TRANSIENT);
}

static inline int settle_bind_blob(sqlite3_stmt *statement, int place, const void *bytes, int count) {
  return sqlite3_bind_blob(statement, place, bytes ? bytes : "", count, SQLITE_TRANSIENT);
}

// A connection that saw an error must not write once more while it is closed.
static inline int settle_no_checkpoint_on_close(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, (int *)0);
}

// The file comes from a disk that anything may have happened to: its schema gets no trust.
static inline int settle_distrust_schema(sqlite3 *connection) {
  return sqlite3_db_config(connection, SQLITE_DBCONFIG_DEFENSIVE, 1, (int *)0) |
         sqlite3_db_config(connection, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, (int *)0);
}

// Keeps the write-ahead log, and with it the space it has, when the connection closes.
static inline int settle_persist_wal(sqlite3 *connection) {
  int on = 1;
  return sqlite3_file_control(connection, "main", SQLITE_FCNTL_PERSIST_WAL, &on);
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The journal as a SQLite file: one row per key that a restart sends.
enum JournalFormat {
  /// Incremented by every change that an older version could not read.
  static let version = 1
  /// Identifies a file of `settled`, at offset 68.
  static let application: UInt32 = 0x5374_6C4A  // "StlJ"
  /// Small pages: one changed row costs one page of the write-ahead log.
  static let pageSize = 1024
  /// The size of the write-ahead log in bytes, from the start; it is larger only for moments.
  static let logSize = 1 << 20
  /// The space inside the file that is free from the start, in bytes.
  static let reserve = 256 << 10
  /// Pages in the log after which it is copied into the file: three quarters of its space.
  static let checkpointPages = logSize / (pageSize + 24) * 3 / 4

  static let schema = """
    CREATE TABLE pending (
      key TEXT PRIMARY KEY NOT NULL,
      sequence INTEGER NOT NULL,
      value BLOB NOT NULL,
      ttl_ms INTEGER NOT NULL,
      boot_high INTEGER NOT NULL,
      boot_low INTEGER NOT NULL,
      boot_ms INTEGER NOT NULL,
      wall_ms INTEGER NOT NULL,
      checksum INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID
    """

  static let put = """
    INSERT OR REPLACE INTO pending
      (key, sequence, value, ttl_ms, boot_high, boot_low, boot_ms, wall_ms, checksum)
      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
    """

  static let remove = "DELETE FROM pending WHERE key = ?1"

  static let all = """
    SELECT key, sequence, value, ttl_ms, boot_high, boot_low, boot_ms, wall_ms, checksum
      FROM pending ORDER BY sequence
    """

  /// What the first bytes of a file say.
  enum Head: Equatable {
    case ours
    case newer(Int)
    case foreign
    case damaged
  }

  /// Judges the first 100 bytes of a file.
  static func judge(_ head: [UInt8]) -> Head {
    guard head.count >= 100, head.starts(with: Array("SQLite format 3\0".utf8)) else {
      return .damaged
    }
    func word(_ offset: Int) -> UInt32 {
      head[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }
    guard word(68) == application else { return .foreign }
    let found = Int(word(60))
    if found > version { return .newer(found) }
    return found == version ? .ours : .damaged
  }
}

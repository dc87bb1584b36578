// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability

/// An open journal: transactions that are on the disk when the call returns.
struct JournalFile: ~Copyable, Sendable {
  private let database: Database
  private let begin: Statement
  private let commit: Statement
  private let put: Statement
  private let remove: Statement
  /// The database's count of written pages when the log was last copied into the file.
  private var pagesAtCheckpoint: Int

  /// Opens a file whose head and log have been checked.
  ///
  /// - Throws: `damaged` when it or its log cannot be read.
  init(_ path: String, vfs: String?) throws(JournalFault) {
    let database = try Database(path, vfs: vfs)
    // Exclusive before the log is first touched: then its index is in memory, not in a file.
    try database.execute("PRAGMA locking_mode = EXCLUSIVE")
    guard try database.text("PRAGMA journal_mode = WAL") == "wal" else {
      throw .sqlite("PRAGMA journal_mode = WAL", 1, "had no effect")
    }
    try database.execute("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0")
    if let finding = try database.text("PRAGMA quick_check(1)"), finding != "ok" {
      throw .damaged(finding)
    }
    let begin = try database.prepare("BEGIN IMMEDIATE")
    let commit = try database.prepare("COMMIT")
    let put = try database.prepare(JournalFormat.put)
    let remove = try database.prepare(JournalFormat.remove)
    pagesAtCheckpoint = database.pagesWritten
    self.database = database
    self.begin = begin
    self.commit = commit
    self.put = put
    self.remove = remove
  }

  /// Every row, oldest first.
  func entries() throws(JournalFault) -> [JournalEntry] {
    let statement = try database.prepare(JournalFormat.all)
    var entries: [JournalEntry] = []
    while try statement.step() {
      guard let row = JournalRow(statement) else {
        throw .damaged("the checksum of row \(entries.count + 1) is wrong")
      }
      entries.append(row.entry)
    }
    return entries
  }

  /// Writes a batch in one transaction and syncs it.
  ///
  /// After a failure the file must not be used again.
  func write(_ batch: JournalBatch, clock: JournalClock) throws(JournalFault) {
    try begin.run()
    for key in batch.removals {
      try remove.bind(1, text: key)
      try remove.run()
    }
    for entry in batch.puts {
      try JournalRow(entry, clock: clock).bind(to: put)
      try put.run()
    }
    try commit.run()
  }

  /// Whether the log has grown enough to be copied into the file.
  var isCheckpointDue: Bool {
    database.pagesWritten - pagesAtCheckpoint >= JournalFormat.checkpointPages
  }

  /// Copies the log into the file.
  mutating func checkpoint() throws(JournalFault) {
    try database.checkpoint()
    pagesAtCheckpoint = database.pagesWritten
  }

  /// Writes a new file at `path`, which must be empty, and syncs it.
  static func build(
    at path: String,
    entries: [JournalEntry],
    clock: JournalClock,
    vfs: String?
  ) throws(JournalFault) {
    let database = try Database(path, vfs: vfs)
    try database.execute(
      """
      PRAGMA page_size = \(JournalFormat.pageSize);
      PRAGMA locking_mode = EXCLUSIVE;
      PRAGMA journal_mode = OFF;
      PRAGMA synchronous = FULL;
      BEGIN IMMEDIATE;
      PRAGMA application_id = \(JournalFormat.application);
      PRAGMA user_version = \(JournalFormat.version);
      \(JournalFormat.schema);
      CREATE TABLE reserve (bytes BLOB);
      INSERT INTO reserve VALUES (zeroblob(\(JournalFormat.reserve)));
      COMMIT;
      BEGIN IMMEDIATE;
      DROP TABLE reserve;
      """
    )
    let put = try database.prepare(JournalFormat.put)
    for entry in entries {
      try JournalRow(entry, clock: clock).bind(to: put)
      try put.run()
    }
    try database.execute("COMMIT")
  }
}

/// One row of the file.
struct JournalRow: Hashable {
  var key: String
  var sequence: Int64
  var value: [UInt8]
  var ttlMilliseconds: Int64
  var stamps: JournalStamps

  /// The row of an entry; `clock` gives the stamps of its acceptance.
  init(_ entry: JournalEntry, clock: JournalClock) {
    key = entry.key
    sequence = Int64(clamping: entry.sequence)
    value = entry.value
    ttlMilliseconds = entry.ttl.wholeMilliseconds
    stamps =
      switch entry.origin {
      case .accepted(let moment): clock.stamps(at: moment)
      case .stored(let stamps): stamps
      }
  }

  /// Reads the current row of `statement`; `nil` when its checksum or its text is wrong.
  init?(_ statement: borrowing Statement) {
    let text = statement.bytes(0)
    guard let key = String(validating: text, as: UTF8.self) else { return nil }
    self.key = key
    sequence = statement.integer(1)
    value = statement.bytes(2)
    ttlMilliseconds = statement.integer(3)
    stamps = JournalStamps(
      boot: BootIdentifier(
        high: UInt64(bitPattern: statement.integer(4)),
        low: UInt64(bitPattern: statement.integer(5))
      ),
      bootMilliseconds: statement.integer(6),
      wallMilliseconds: statement.integer(7)
    )
    guard sequence >= 0, statement.integer(8) == checksum else { return nil }
  }

  var entry: JournalEntry {
    JournalEntry(
      key: key,
      sequence: UInt64(clamping: sequence),
      value: value,
      origin: .stored(stamps),
      ttl: .milliseconds(ttlMilliseconds)
    )
  }

  /// Binds the row to the parameters of a statement.
  func bind(to statement: borrowing Statement) throws(JournalFault) {
    try statement.bind(1, text: key)
    try statement.bind(2, integer: sequence)
    try statement.bind(3, blob: value)
    try statement.bind(4, integer: ttlMilliseconds)
    try statement.bind(5, integer: Int64(bitPattern: stamps.boot.high))
    try statement.bind(6, integer: Int64(bitPattern: stamps.boot.low))
    try statement.bind(7, integer: stamps.bootMilliseconds)
    try statement.bind(8, integer: stamps.wallMilliseconds)
    try statement.bind(9, integer: checksum)
  }

  /// FNV-1a over every field: SQLite checks the structure of its pages, not their content.
  private var checksum: Int64 {
    var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    func mix(word: UInt64) {
      for shift in stride(from: 0, to: 64, by: 8) { mix(UInt8(truncatingIfNeeded: word >> shift)) }
    }
    for byte in key.utf8 { mix(byte) }
    mix(0xFF)  // Never part of UTF-8: ends the key.
    for byte in value { mix(byte) }
    mix(word: UInt64(value.count))
    for word in [sequence, ttlMilliseconds, stamps.bootMilliseconds, stamps.wallMilliseconds] {
      mix(word: UInt64(bitPattern: word))
    }
    mix(word: stamps.boot.high)
    mix(word: stamps.boot.low)
    return Int64(bitPattern: hash)
  }
}

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

// Settle
// SPDX-License-Identifier: Apache-2.0

import Durability

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
  func bind(to statement: borrowing Statement) throws(SQLiteError) {
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

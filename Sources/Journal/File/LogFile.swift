// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Durability
internal import Glibc

/// SQLite's write-ahead log beside the journal, `PATH-wal`, as a file.
///
/// It has at least ``JournalFormat/logSize`` bytes at any time, and while it is empty it says
/// so with ``emptyMark``: a log that was deleted, shortened or overwritten is recognised.
enum LogFile {
  /// The first bytes of an empty log, in place of SQLite's own, which SQLite takes
  /// for an empty log; within one sector, so that a power cut leaves all of it or none.
  static let emptyMark = Array("settle: this log holds nothing.\n".utf8)

  /// What is wrong with a log; `nil` when it is sound, empty, or torn in its last transaction only.
  static func damage(of path: String) throws(JournalFault) -> String? {
    guard let size = try Files.status(path)?.size else { return "its log is missing" }
    let minimum = JournalFormat.logSize
    guard size >= minimum else { return "its log has \(size) bytes, not \(minimum) or more" }
    if try isEmpty(path) { return nil }
    return LogCheck.damage(in: try Files.head(of: path, count: size))
  }

  static func isEmpty(_ path: String) throws(JournalFault) -> Bool {
    try Files.head(of: path, count: emptyMark.count) == emptyMark
  }

  /// Replaces a log by an empty one that has its space, so that a full disk does not stop it.
  ///
  /// The zeros are written: blocks that are only reserved cost a write of the file system's own
  /// when they are first used.
  static func create(_ path: String) throws(JournalFault) {
    try Files.remove(path)
    try Files.create(path)
    try Files.update(path) { (descriptor) throws(JournalFault) in
      var bytes = emptyMark
      bytes += [UInt8](repeating: 0, count: JournalFormat.logSize - bytes.count)
      try Files.write(bytes, to: descriptor, path)
    }
  }

  /// Empties a log whose content is in the file and synced there, and which SQLite has closed.
  ///
  /// A power cut in the middle leaves the log with its content, which changes nothing, or empty.
  static func clear(_ path: String) throws(JournalFault) {
    try Files.update(path) { (descriptor) throws(JournalFault) in
      try Files.write(emptyMark, to: descriptor, path)
    }
    guard let size = try Files.status(path)?.size, size > JournalFormat.logSize else { return }
    try Files.update(path) { (descriptor) throws(JournalFault) in
      guard ftruncate(descriptor, JournalFormat.logSize) == 0 else {
        throw Files.failure("ftruncate \(path)")
      }
    }
  }
}

/// Detects damage in SQLite's write-ahead log that SQLite treats as its end.
///
/// SQLite stops at the first frame whose checksum is wrong and ignores what follows: right for the
/// transaction that a power cut tore, which is the last, but after damage in the middle it would
/// silently bring back older values of keys.
enum LogCheck {
  private static let headSize = 32
  private static let frameHeadSize = 24

  /// What is wrong with a log; `nil` when it is sound, or torn in its last transaction only.
  ///
  /// Linear in the size of the log.
  static func damage(in log: [UInt8]) -> String? {
    guard log.count >= headSize else { return "the head of its log" }
    let magic = word(log, 0)
    var sum = Checksum(isBigEndian: magic & 1 == 1)
    sum.add(log, 0..<24)
    guard magic & ~1 == 0x377F_0682, sum.matches(log, at: 24) else { return "the head of its log" }
    let pageSize = Int(word(log, 8))
    guard pageSize == JournalFormat.pageSize else { return "the page size in its log" }
    let frameSize = frameHeadSize + pageSize
    var place = headSize
    while place + frameSize <= log.count, isCurrent(log, place) {
      sum.add(log, place..<(place + 8))
      sum.add(log, (place + frameHeadSize)..<(place + frameSize))
      guard sum.matches(log, at: place + 16) else { break }
      place += frameSize
    }
    guard place + frameSize <= log.count else { return nil }
    // Every transaction is synced before the next one is written, and every start creates a log of
    // its own: behind the first bad frame there is at most the end of the same transaction.
    let ends = stride(from: place + frameSize, through: log.count - frameSize, by: frameSize)
      .count { isEnd(log, $0) }
    return ends <= (isEnd(log, place) ? 0 : 1) ? nil : "the middle of its log"
  }

  /// Whether a frame ends a transaction of the log's present use.
  private static func isEnd(_ log: [UInt8], _ frame: Int) -> Bool {
    isCurrent(log, frame) && word(log, frame + 4) != 0
  }

  /// Whether a frame belongs to the log's present use, not to what it held before.
  private static func isCurrent(_ log: [UInt8], _ frame: Int) -> Bool {
    log[(frame + 8)..<(frame + 16)] == log[16..<24]
  }

  private static func word(_ bytes: [UInt8], _ place: Int) -> UInt32 {
    bytes[place..<(place + 4)].reduce(0) { $0 << 8 | UInt32($1) }
  }

  /// The running checksum of SQLite's log format.
  private struct Checksum {
    var isBigEndian: Bool
    private var first: UInt32 = 0
    private var second: UInt32 = 0

    init(isBigEndian: Bool) {
      self.isBigEndian = isBigEndian
    }

    mutating func add(_ bytes: [UInt8], _ range: Range<Int>) {
      for place in stride(from: range.lowerBound, to: range.upperBound, by: 8) {
        let left = word(bytes, place)
        let right = word(bytes, place + 4)
        first &+= (isBigEndian ? left : left.byteSwapped) &+ second
        second &+= (isBigEndian ? right : right.byteSwapped) &+ first
      }
    }

    func matches(_ bytes: [UInt8], at place: Int) -> Bool {
      word(bytes, place) == first && word(bytes, place + 4) == second
    }
  }
}

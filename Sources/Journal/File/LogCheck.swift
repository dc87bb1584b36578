// Settle
// SPDX-License-Identifier: Apache-2.0

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

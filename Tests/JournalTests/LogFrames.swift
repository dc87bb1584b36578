// Settle
// SPDX-License-Identifier: Apache-2.0

/// The frames of a write-ahead log with pages of 1 KiB, as far as they belong to its present use.
struct LogFrames {
  let bytes: [UInt8]
  /// The frames that end a transaction.
  private(set) var ends: [Int] = []
  private(set) var count = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    while Self.place(of: count + 1) <= bytes.count, isCurrent(count) {
      let size = Self.place(of: count) + 4
      if bytes[size..<(size + 4)].contains(where: { $0 != 0 }) { ends.append(count) }
      count += 1
    }
  }

  /// Where a frame begins; its page begins 24 bytes later.
  static func place(of frame: Int) -> Int { 32 + 1048 * frame }

  /// The frames that differ from those of an earlier reading.
  func written(since earlier: LogFrames) -> Range<Int> {
    let changed = (0..<count).filter { frame in
      let range = Self.place(of: frame)..<Self.place(of: frame + 1)
      return bytes[range] != earlier.bytes[range]
    }
    return (changed.first ?? 0)..<(changed.last.map { $0 + 1 } ?? 0)
  }

  private func isCurrent(_ frame: Int) -> Bool {
    let salt = Self.place(of: frame) + 8
    return bytes[salt..<(salt + 8)] == bytes[16..<24]
  }
}

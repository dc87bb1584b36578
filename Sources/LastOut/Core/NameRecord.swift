// Settle
// SPDX-License-Identifier: Apache-2.0

/// A name of up to 31 bytes, or a reference to a longer one; half a cache line.
@usableFromInline
@frozen
struct NameRecord {
  /// The bytes of the name followed by zeros, or the start and length of a longer one; the last
  /// byte is the length, or 255 for a longer one.
  @usableFromInline var words: (UInt64, UInt64, UInt64, UInt64) = (0, 0, 0, 0)

  static var longest: Int { 31 }
  private static var elsewhere: Int { 255 }
  private static var free: Int { 254 }

  init(_ name: UnsafeBufferPointer<UInt8>) {
    unsafe withUnsafeMutableBytes(of: &words) { bytes in
      unsafe bytes.copyBytes(from: name)
      unsafe bytes[31] = UInt8(name.count)
    }
  }

  init(start: Int, count: Int) {
    words.0 = UInt64(start)
    words.1 = UInt64(count)
    words.3 = (UInt64(Self.elsewhere) << 56).littleEndian
  }

  /// Creates a free record that refers to the next free one; -1 for none.
  init(nextFree: Int) {
    words.0 = UInt64(bitPattern: Int64(nextFree))
    words.3 = (UInt64(Self.free) << 56).littleEndian
  }

  var isFree: Bool { count == Self.free }

  /// The free record after this one.
  var nextFree: Int { Int(Int64(bitPattern: words.0)) }

  /// The length of a name in the record; 254 for a free record, 255 for a longer name.
  @inlinable
  @inline(__always)
  var count: Int { Int(truncatingIfNeeded: UInt64(littleEndian: words.3) &>> 56) }

  /// Where a longer name starts in the arena, and its length.
  var place: (start: Int, count: Int)? {
    count == Self.elsewhere ? (Int(words.0), Int(words.1)) : nil
  }
}

/// A name of 16 to 31 bytes, like most topics: four words, of which two may overlap the others.
@usableFromInline
@frozen
struct UsualName {
  @usableFromInline let words: (UInt64, UInt64, UInt64, UInt64)
  @usableFromInline let count: Int

  @inlinable
  @inline(__always)
  static func fits(_ count: Int) -> Bool { UInt(bitPattern: count &- 16) < 16 }

  @inlinable
  @inline(__always)
  init(_ start: UnsafeRawPointer, _ count: Int) {
    words = unsafe (
      KeyTable.word(start, 0), KeyTable.word(start, 8),
      KeyTable.word(start, count &- 16), KeyTable.word(start, count &- 8)
    )
    self.count = count
  }

  /// The same hash as ``KeyTable/hash(_:seed:)``.
  @inlinable
  @inline(__always)
  func hash(_ seed: KeyTable.Seed) -> UInt64 {
    let first = seed.first ^ UInt64(truncatingIfNeeded: count)
    let hash = KeyTable.fold(words.0 ^ first, words.1 ^ seed.second)
    return KeyTable.fold(words.2 ^ hash, words.3 ^ seed.second)
  }

  /// Whether a record holds the same name.
  @inlinable
  @inline(__always)
  func isEqual(_ record: UnsafePointer<NameRecord>) -> Bool {
    let start = unsafe UnsafeRawPointer(record)
    return unsafe record.pointee.count == count
      && words.0 == KeyTable.word(start, 0) && words.1 == KeyTable.word(start, 8)
      && words.2 == KeyTable.word(start, count &- 16)
      && words.3 == KeyTable.word(start, count &- 8)
  }
}

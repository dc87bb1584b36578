// Settle
// SPDX-License-Identifier: Apache-2.0

extension KeyTable {
  /// The two numbers that make one table's hash different from another's.
  ///
  /// Both enter each product, so that no choice of names makes one factor zero.
  @usableFromInline
  struct Seed {
    @usableFromInline let first = UInt64.random(in: .min ... .max)
    @usableFromInline let second = UInt64.random(in: .min ... .max)

    @inlinable init() {}
  }

  /// Names beyond this many bytes take the way that is written out in line: topics are that long.
  @inlinable static var shortest: Int { 16 }

  /// Folds sixteen bytes at a time into a 64 by 64 bit product, whose halves are combined.
  ///
  /// The last step takes the sixteen bytes that end the name, some of them for the second time.
  /// `isLong` says whether there are more than ``shortest`` bytes; it should be a literal.
  @inlinable
  @inline(__always)
  static func hash(_ start: UnsafeRawPointer, _ count: Int, isLong: Bool, seed: Seed) -> UInt64 {
    var hash = seed.first ^ UInt64(truncatingIfNeeded: count)
    guard isLong else {
      let words = unsafe shortWords(start, count)
      return fold(words.first ^ hash, words.last ^ seed.second)
    }
    // The first step stands alone: most topics need one, and then no loop.
    hash = unsafe fold(word(start, 0) ^ hash, word(start, 8) ^ seed.second)
    var offset = 16
    while offset < count &- 16 {
      hash = unsafe fold(word(start, offset) ^ hash, word(start, offset &+ 8) ^ seed.second)
      offset &+= 16
    }
    return unsafe fold(
      word(start, count &- 16) ^ hash,
      word(start, count &- 8) ^ seed.second
    )
  }

  /// Whether both places hold the same `count` bytes; `isLong` as above.
  @inlinable
  @inline(__always)
  static func isEqual(
    _ left: UnsafeRawPointer,
    _ right: UnsafeRawPointer,
    count: Int,
    isLong: Bool
  ) -> Bool {
    guard isLong else {
      let (one, other) = unsafe (shortWords(left, count), shortWords(right, count))
      return one.first == other.first && one.last == other.last
    }
    guard unsafe difference(left, right, at: 0) == 0 else { return false }
    var offset = 16
    while offset < count &- 16 {
      guard unsafe difference(left, right, at: offset) == 0 else { return false }
      offset &+= 16
    }
    return unsafe difference(left, right, at: count &- 16) == 0
  }

  /// Up to sixteen bytes as two numbers, which overlap where there are fewer.
  @inlinable
  static func shortWords(
    _ start: UnsafeRawPointer,
    _ count: Int
  ) -> (first: UInt64, last: UInt64) {
    if count >= 8 { return unsafe (word(start, 0), word(start, count &- 8)) }
    if count >= 4 {
      return unsafe (
        UInt64(start.loadUnaligned(as: UInt32.self)),
        UInt64(start.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      )
    }
    guard count > 0 else { return (0, 0) }
    // One byte is taken three times, two are taken once and twice.
    let middle = unsafe start.load(fromByteOffset: count &>> 1, as: UInt8.self)
    let last = unsafe start.load(fromByteOffset: count &- 1, as: UInt8.self)
    return unsafe (
      UInt64(start.load(as: UInt8.self)), UInt64(middle) &<< 8 | UInt64(last)
    )
  }

  /// Zero if sixteen bytes are the same in both places.
  @inlinable
  @inline(__always)
  static func difference(
    _ left: UnsafeRawPointer,
    _ right: UnsafeRawPointer,
    at offset: Int
  ) -> UInt64 {
    unsafe (word(left, offset) ^ word(right, offset))
      | (word(left, offset &+ 8) ^ word(right, offset &+ 8))
  }

  @inlinable
  @inline(__always)
  static func word(_ start: UnsafeRawPointer, _ offset: Int) -> UInt64 {
    unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  @inlinable
  @inline(__always)
  static func fold(_ left: UInt64, _ right: UInt64) -> UInt64 {
    let product = left.multipliedFullWidth(by: right)
    return product.high ^ product.low
  }
}

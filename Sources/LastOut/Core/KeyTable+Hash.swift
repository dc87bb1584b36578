// Settle
// SPDX-License-Identifier: Apache-2.0

extension KeyTable {
  /// The seed of a table's hash.
  ///
  /// Both numbers enter each product, so that no choice of names makes one factor zero.
  @usableFromInline
  @frozen
  struct Seed {
    @usableFromInline let first = UInt64.random(in: .min ... .max)
    @usableFromInline let second = UInt64.random(in: .min ... .max)

    @usableFromInline
    init() {}
  }

  /// Folds sixteen bytes at a time into a 64 by 64 bit product, whose halves are combined.
  ///
  /// The last step reads the last sixteen bytes of the name, some of them for the second time.
  static func hash(_ name: UnsafeBufferPointer<UInt8>, seed: Seed) -> UInt64 {
    var hash = seed.first ^ UInt64(truncatingIfNeeded: name.count)
    guard let start = unsafe UnsafeRawPointer(name.baseAddress), name.count >= 16 else {
      let words = unsafe shortWords(name)
      return fold(words.first ^ hash, words.last ^ seed.second)
    }
    // The first step is separate: a name of sixteen bytes is read twice.
    var offset = 0
    repeat {
      hash = unsafe fold(word(start, offset) ^ hash, word(start, offset &+ 8) ^ seed.second)
      offset &+= 16
    } while offset < name.count &- 16
    return unsafe fold(
      word(start, name.count &- 16) ^ hash,
      word(start, name.count &- 8) ^ seed.second
    )
  }

  /// Whether both buffers hold the same bytes.
  static func isEqual(
    _ left: UnsafeBufferPointer<UInt8>,
    _ right: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard left.count == right.count else { return false }
    guard let one = unsafe UnsafeRawPointer(left.baseAddress),
      let other = unsafe UnsafeRawPointer(right.baseAddress), left.count >= 16
    else {
      let (one, other) = unsafe (shortWords(left), shortWords(right))
      return one.first == other.first && one.last == other.last
    }
    var offset = 0
    while offset < left.count &- 16 {
      guard unsafe difference(one, other, at: offset) == 0 else { return false }
      offset &+= 16
    }
    return unsafe difference(one, other, at: left.count &- 16) == 0
  }

  /// Up to fifteen bytes as two numbers, which overlap for shorter names.
  private static func shortWords(
    _ name: UnsafeBufferPointer<UInt8>
  ) -> (first: UInt64, last: UInt64) {
    guard let start = unsafe UnsafeRawPointer(name.baseAddress), name.count > 0 else {
      return (0, 0)
    }
    let count = name.count
    if count >= 8 { return unsafe (word(start, 0), word(start, count &- 8)) }
    if count >= 4 {
      return unsafe (
        UInt64(start.loadUnaligned(as: UInt32.self)),
        UInt64(start.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
      )
    }
    // One byte is read three times; of two, one is read twice.
    let middle = unsafe start.load(fromByteOffset: count &>> 1, as: UInt8.self)
    let last = unsafe start.load(fromByteOffset: count &- 1, as: UInt8.self)
    return unsafe (
      UInt64(start.load(as: UInt8.self)), UInt64(middle) &<< 8 | UInt64(last)
    )
  }

  /// Zero if sixteen bytes are equal.
  private static func difference(
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

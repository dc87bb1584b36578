// Settle
// SPDX-License-Identifier: Apache-2.0

// Both functions take eight bytes at a time. The last word overlaps the one before it, so that a
// name of eight bytes or more needs no loop over single bytes.
extension KeyTable {
  /// Folds each word into a 64 by 64 bit product, whose halves are combined.
  @inlinable
  @inline(__always)
  static func hash(_ bytes: UnsafeBufferPointer<UInt8>, seed: UInt64) -> UInt64 {
    let count = bytes.count
    var state = seed ^ (UInt64(truncatingIfNeeded: count) &* 0x9E37_79B9_7F4A_7C15)
    guard count > 0, let start = unsafe UnsafeRawPointer(bytes.baseAddress) else {
      return fold(state)
    }
    guard count >= 8 else { return unsafe fold(state ^ short(start, count)) }
    var offset = 0
    while offset &+ 8 < count {
      state = unsafe fold(state ^ word(start, offset))
      offset &+= 8
    }
    return unsafe fold(state ^ word(start, count &- 8))
  }

  /// Whether both hold the same bytes.
  @inlinable
  @inline(__always)
  static func isEqual(
    _ left: UnsafeBufferPointer<UInt8>,
    _ right: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    let count = left.count
    guard count == right.count else { return false }
    guard count > 0, let one = unsafe UnsafeRawPointer(left.baseAddress),
      let other = unsafe UnsafeRawPointer(right.baseAddress)
    else { return true }
    guard count >= 8 else { return unsafe short(one, count) == short(other, count) }
    var offset = 0
    while offset &+ 8 < count {
      guard unsafe word(one, offset) == word(other, offset) else { return false }
      offset &+= 8
    }
    return unsafe word(one, count &- 8) == word(other, count &- 8)
  }

  @inlinable
  @inline(__always)
  static func word(_ start: UnsafeRawPointer, _ offset: Int) -> UInt64 {
    unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// One to seven bytes as one number.
  @inlinable
  static func short(_ start: UnsafeRawPointer, _ count: Int) -> UInt64 {
    var word: UInt64 = 0
    for position in 0..<count {
      word = unsafe word << 8 | UInt64(start.load(fromByteOffset: position, as: UInt8.self))
    }
    return word
  }

  @inlinable
  @inline(__always)
  static func fold(_ word: UInt64) -> UInt64 {
    let product = (word ^ 0xD6E8_FEB8_6659_FD93).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
    return product.high ^ product.low
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

extension KeyTable {
  /// Folds eight bytes at a time into a 64 by 64 bit product, whose halves are combined.
  @inlinable
  static func hash(_ bytes: UnsafeBufferPointer<UInt8>, seed: UInt64) -> UInt64 {
    var state = seed ^ (UInt64(truncatingIfNeeded: bytes.count) &* 0x9E37_79B9_7F4A_7C15)
    guard let start = unsafe UnsafeRawPointer(bytes.baseAddress) else { return fold(state) }
    var offset = 0
    while offset + 8 <= bytes.count {
      state = unsafe fold(state ^ start.loadUnaligned(fromByteOffset: offset, as: UInt64.self))
      offset += 8
    }
    return unsafe offset < bytes.count ? fold(state ^ tail(start, offset, bytes.count)) : state
  }

  /// Whether both hold the same bytes.
  @inlinable
  static func isEqual(
    _ left: UnsafeBufferPointer<UInt8>,
    _ right: UnsafeBufferPointer<UInt8>
  ) -> Bool {
    guard left.count == right.count else { return false }
    guard let one = unsafe UnsafeRawPointer(left.baseAddress),
      let other = unsafe UnsafeRawPointer(right.baseAddress)
    else { return true }
    var offset = 0
    while offset + 8 <= left.count {
      let word = unsafe one.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      guard unsafe word == other.loadUnaligned(fromByteOffset: offset, as: UInt64.self) else {
        return false
      }
      offset += 8
    }
    return unsafe offset == left.count
      || tail(one, offset, left.count) == tail(other, offset, left.count)
  }

  /// The last one to seven bytes as one number.
  @inlinable
  static func tail(_ start: UnsafeRawPointer, _ offset: Int, _ count: Int) -> UInt64 {
    if count >= 8 {
      // The word that ends at the last byte, without the bytes that were taken already.
      let word = unsafe start.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
      return word >> UInt64(truncatingIfNeeded: 8 * (8 - (count - offset)))
    }
    var word: UInt64 = 0
    for position in offset..<count {
      word = unsafe word << 8 | UInt64(start.load(fromByteOffset: position, as: UInt8.self))
    }
    return word
  }

  @inlinable
  static func fold(_ word: UInt64) -> UInt64 {
    let product = (word ^ 0xD6E8_FEB8_6659_FD93).multipliedFullWidth(by: 0xA076_1D64_78BD_642F)
    return product.high ^ product.low
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// A text with an exponent added to some of its integers, and the way back to the original places.
struct WidenedText {
  private(set) var bytes: [UInt8] = []
  /// Where, in ``bytes``, the added exponents start; ascending.
  private var exponents: [Int] = []

  mutating func append(_ source: ArraySlice<UInt8>) { bytes.append(contentsOf: source) }

  mutating func insertExponent() {
    exponents.append(bytes.count)
    bytes.append(contentsOf: "e0".utf8)
  }

  /// The place in the original text of a place in this one.
  func originalPosition(of position: Int) -> Int {
    position - 2 * exponents.count { $0 < position }
  }
}

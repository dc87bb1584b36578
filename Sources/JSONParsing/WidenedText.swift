// Settle
// SPDX-License-Identifier: Apache-2.0

/// A text with an exponent added to some of its integers, and a mapping to the original positions.
struct WidenedText {
  private(set) var bytes: [UInt8] = []
  /// The positions of the added exponents in ``bytes``; ascending.
  private var exponents: [Int] = []

  mutating func append(_ source: ArraySlice<UInt8>) { bytes.append(contentsOf: source) }

  mutating func insertExponent() {
    exponents.append(bytes.count)
    bytes.append(contentsOf: "e0".utf8)
  }

  /// The position in the original text of a position in this one.
  func originalPosition(of position: Int) -> Int {
    position - 2 * exponents.count { $0 < position }
  }
}

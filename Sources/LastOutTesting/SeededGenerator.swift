// Settle
// SPDX-License-Identifier: Apache-2.0

/// SplitMix64: the same seed gives the same numbers everywhere.
package struct SeededGenerator: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) {
    state = seed
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var word = state
    word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
    word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
    return word ^ (word >> 31)
  }
}

/// Draws that give the same results everywhere; those of the standard library may change.
extension SeededGenerator {
  /// A number from 0 up to `bound`, which is excluded and more than zero.
  package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// A number of a closed range.
  package mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.count)
  }

  /// `true` in `percent` of a hundred cases.
  package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}

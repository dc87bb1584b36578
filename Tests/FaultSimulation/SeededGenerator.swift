// Settle
// SPDX-License-Identifier: Apache-2.0

/// SplitMix64: the same seed gives the same numbers on every machine.
///
/// Ranges are drawn here and not by the standard library, whose way of drawing may change.
package struct SeededGenerator: Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed &* 0x9E37_79B9_7F4A_7C15 &+ 0x1234_5678_9ABC_DEF1 }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// A number from 0 up to `bound`, which is excluded and more than zero.
  package mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }

  /// A number of a closed range.
  package mutating func within(_ range: ClosedRange<Int>) -> Int {
    range.lowerBound + below(range.count)
  }

  /// `true` in `percent` of a hundred cases.
  package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// How often durations fell between fixed bounds; recording one costs a few comparisons.
package struct DurationHistogram: Sendable {
  /// The upper bounds in ascending order, each included in its bucket.
  package let bounds: [Duration]
  /// One count per bound, and one for everything above.
  package private(set) var counts: [UInt64]
  package private(set) var sum: Duration = .zero

  package init(bounds: [Duration]) {
    self.bounds = bounds
    counts = Array(repeating: 0, count: bounds.count + 1)
  }

  package mutating func record(_ duration: Duration) {
    sum += duration
    var place = 0
    while place < bounds.count, duration > bounds[place] { place += 1 }
    counts[place] += 1
  }
}

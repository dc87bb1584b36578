// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import Testing

struct FilterIndexTests {
  /// Every filter of up to three levels of these words.
  private static var filters: [String] {
    let words = ["a", "$s", "", "+"]
    var all = words + ["#"]
    for first in words {
      all.append("\(first)/#")
      for second in words {
        all.append("\(first)/\(second)")
        all.append("\(first)/\(second)/#")
        for third in words { all.append("\(first)/\(second)/\(third)") }
      }
    }
    return all
  }

  @Test func `the index finds what comparing each pair finds`() {
    let filters = Self.filters
    let index = FilterIndex(filters)
    var pairs = 0
    for filter in filters {
      let expected = filters.indices.filter { Topic.overlaps(filters[$0], filter) }
      #expect(index.overlapping(filter) == expected, "\(filter)")
      pairs += expected.count
    }
    #expect(pairs > 1000)
    #expect(FilterIndex([]).overlapping("#") == [])
  }
}

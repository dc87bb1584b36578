// Settle
// SPDX-License-Identifier: Apache-2.0

package import LastOut

/// Draws the distribution of changes over time as a row of small bars.
package enum Sparkline {
  private static let bars: [Character] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"]

  /// One bar for each `cell` of time between the first and the last moment; a blank for none.
  ///
  /// Cells grow so that there are at most `limit` bars. `moments` must be in order.
  package static func of(
    _ moments: [Moment],
    cell: Duration = .milliseconds(100),
    limit: Int = 20
  ) -> String {
    guard let first = moments.first, let last = moments.last else { return "" }
    let span = first.duration(to: last)
    let width = max(cell, span / limit + .nanoseconds(1))
    var counts = Array(repeating: 0, count: Int(span / width) + 1)
    for moment in moments { counts[Int(first.duration(to: moment) / width)] += 1 }
    let highest = counts.max() ?? 1
    return String(
      counts.map { count in
        count == 0 ? " " : bars[max(0, (count * bars.count + highest - 1) / highest - 1)]
      }
    )
  }
}

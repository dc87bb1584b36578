// Settle
// SPDX-License-Identifier: Apache-2.0

internal import LastOut

/// The time axis of a plot, which maps moments to columns.
struct TimelineAxis {
  let start: Moment
  let end: Moment
  let columns: Int

  /// The number of `moments` in each column.
  func counts(_ moments: [Moment]) -> [Int] {
    var counts = [Int](repeating: 0, count: columns)
    let span = Double(max(1, end.nanoseconds - start.nanoseconds))
    for moment in moments {
      let share = Double(moment.nanoseconds - start.nanoseconds) / span
      counts[min(columns - 1, Int(share * Double(columns - 1)))] += 1
    }
    return counts
  }

  /// The labels of the first and the last moment.
  var scale: String {
    let (left, right) = (Self.text(start), Self.text(end))
    let gap = max(1, columns - left.count - right.count)
    return left + String(repeating: " ", count: gap) + right
  }

  /// `300 ms`, or `2.25 s` from a second on.
  static func text(_ moment: Moment) -> String {
    let milliseconds = Double(moment.nanoseconds / 10_000) / 100
    let (number, unit) = milliseconds < 1000 ? (milliseconds, "ms") : (milliseconds / 1000, "s")
    let rounded = (number * 100).rounded() / 100
    let whole = Int64(rounded)
    return (rounded == Double(whole) ? "\(whole)" : "\(rounded)") + " " + unit
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Values

/// Rows of text: aligned under headings on a terminal, tab separated in a pipe.
struct TextTable {
  struct Cell {
    let text: String
    let color: Terminal.Color?

    init(_ text: String, _ color: Terminal.Color? = nil) {
      self.text = Excerpt.visible(text)
      self.color = color
    }
  }

  private static let gap = 2

  let headings: [String]
  var rows: [[Cell]] = []

  init(_ headings: [String]) { self.headings = headings }

  func print() {
    guard !rows.isEmpty else { return }
    guard Terminal.isInteractive else {
      for row in rows { StandardOutput.print(row.map(\.text).joined(separator: "\t")) }
      return
    }
    let widths = headings.indices.map { column in
      max(headings[column].count, rows.map { $0[column].text.count }.max() ?? 0)
    }
    let total = widths.reduce(0, +) + Self.gap * (widths.count - 1)
    let isNarrow = Terminal.width.map { total > $0 } ?? false
    for row in [headings.map { Cell($0, .faint) }] + rows {
      StandardOutput.print(isNarrow ? stacked(row, widths) : aligned(row[...], widths[...]))
    }
  }

  /// The first cell on a line of its own, the others indented below it.
  private func stacked(_ row: [Cell], _ widths: [Int]) -> String {
    aligned(row.prefix(1), widths.prefix(1)) + "\n" + String(repeating: " ", count: Self.gap)
      + aligned(row.dropFirst(), widths.dropFirst())
  }

  private func aligned(_ row: ArraySlice<Cell>, _ widths: ArraySlice<Int>) -> String {
    var line = ""
    for (column, cell) in zip(row.indices, row) {
      let isLast = column == row.indices.last
      let padding = isLast ? 0 : widths[column] - cell.text.count + Self.gap
      line += Terminal.colored(cell.text, cell.color) + String(repeating: " ", count: padding)
    }
    return line
  }
}

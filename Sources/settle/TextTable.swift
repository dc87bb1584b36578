// Settle
// SPDX-License-Identifier: Apache-2.0

/// Rows of text: aligned under headings for a person, tab separated for a pipe.
struct TextTable {
  struct Cell {
    let text: String
    let color: Terminal.Color?

    init(_ text: String, _ color: Terminal.Color? = nil) {
      self.text = Terminal.visible(text)
      self.color = color
    }
  }

  let headings: [String]
  var rows: [[Cell]] = []

  init(_ headings: [String]) { self.headings = headings }

  func print() {
    guard !rows.isEmpty else { return }
    guard Terminal.isInteractive else {
      for row in rows { Terminal.print(row.map(\.text).joined(separator: "\t")) }
      return
    }
    let widths = headings.indices.map { column in
      max(headings[column].count, rows.map { $0[column].text.count }.max() ?? 0)
    }
    Terminal.print(aligned(headings.map { Cell($0, .faint) }, widths))
    for row in rows { Terminal.print(aligned(row, widths)) }
  }

  private func aligned(_ row: [Cell], _ widths: [Int]) -> String {
    var line = ""
    for (column, cell) in row.enumerated() {
      let isLast = column == row.count - 1
      let padding = isLast ? 0 : widths[column] - cell.text.count + 2
      line += Terminal.colored(cell.text, cell.color) + String(repeating: " ", count: padding)
    }
    return line
  }
}

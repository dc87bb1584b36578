// Settle
// SPDX-License-Identifier: Apache-2.0

/// What the terminal is to show: one character and one style per cell.
package struct Grid: Hashable, Sendable {
  package struct Cell: Hashable, Sendable {
    /// Empty behind a character that takes two cells.
    package var text: String
    package var style: Style
  }

  /// A piece of a row in one style.
  package struct Run: Hashable, Sendable {
    package let column: Int
    package var text: String
    package let style: Style
  }

  package let size: ScreenSize
  private var cells: [Cell]

  package init(size: ScreenSize) {
    self.size = size
    cells = Array(
      repeating: Cell(text: " ", style: .plain),
      count: max(0, size.columns) * max(0, size.rows)
    )
  }

  package subscript(row: Int, column: Int) -> Cell {
    cells[row * size.columns + column]
  }

  /// Writes `text` from a cell on, at most `limit` cells of it; returns the column behind it.
  ///
  /// What lies outside the grid is left out; a character that would be cut in two is not written.
  @discardableResult
  mutating func put(
    _ text: String,
    row: Int,
    column: Int,
    limit: Int = .max,
    style: Style = .plain
  ) -> Int {
    guard row >= 0, row < size.rows, column >= 0 else { return column }
    let end = limit < size.columns - column ? column + max(0, limit) : size.columns
    var place = column
    for character in text {
      let width = CellWidth.of(character)
      let index = row * size.columns + place
      if width == 0 {
        if place > column { cells[index - 1].text.append(character) }
        continue
      }
      guard place + width <= end else { break }
      cells[index] = Cell(text: String(character), style: style)
      if width == 2 { cells[index + 1] = Cell(text: "", style: style) }
      place += width
    }
    return place
  }

  /// Fills a whole row with blanks of one style.
  mutating func fill(row: Int, style: Style) {
    guard row >= 0, row < size.rows else { return }
    for column in 0..<size.columns {
      cells[row * size.columns + column] = Cell(text: " ", style: style)
    }
  }

  /// The pieces of a row, from left to right, without gaps.
  package func runs(row: Int) -> [Run] {
    var runs: [Run] = []
    for column in 0..<size.columns {
      let cell = self[row, column]
      if let last = runs.indices.last, runs[last].style == cell.style {
        runs[last].text += cell.text
      } else {
        runs.append(Run(column: column, text: cell.text, style: cell.style))
      }
    }
    return runs
  }

  /// The rows as text, without the blanks at their ends.
  package var texts: [String] {
    (0..<size.rows).map { row in
      var text = (0..<size.columns).map { self[row, $0].text }.joined()
      while text.last == " " { text.removeLast() }
      return text
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The content of the terminal: a character and a style for each cell.
package struct Grid: Hashable, Sendable {
  package struct Cell: Hashable, Sendable {
    /// One character; empty after a character of two cells.
    package var text: String
    package var style: Style
  }

  /// Consecutive cells of a row with the same style.
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

  /// Writes at most `limit` cells of `text` and returns the column after it.
  ///
  /// Text outside the grid is clipped. A wide character that does not fit is not written.
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
    var position = column
    for character in text {
      let width = CellWidth.of(character)
      let index = row * size.columns + position
      if width == 0 {
        if position > column { cells[index - 1].text.append(character) }
        continue
      }
      guard position + width <= end else { break }
      cells[index] = Cell(text: String(character), style: style)
      if width == 2 { cells[index + 1] = Cell(text: "", style: style) }
      position += width
    }
    return position
  }

  /// Fills a row with spaces of one style.
  mutating func fill(row: Int, style: Style) {
    guard row >= 0, row < size.rows else { return }
    for column in 0..<size.columns {
      cells[row * size.columns + column] = Cell(text: " ", style: style)
    }
  }

  /// The runs of a row, from left to right.
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

  /// The rows as text, without trailing spaces.
  package var texts: [String] {
    (0..<size.rows).map { row in
      var text = (0..<size.columns).map { self[row, $0].text }.joined()
      while text.last == " " { text.removeLast() }
      return text
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices

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

/// The arrangement of the screen's parts for a terminal size.
struct ScreenLayout {
  /// The smallest usable terminal.
  static let smallest = ScreenSize(columns: 20, rows: 4)

  /// The maximum width of the state column; reasons are shorter.
  private static let widestState = 48

  /// A part of a property's line; a part that does not fit has width 0.
  struct Column: Hashable {
    var start: Int
    var width: Int
    var end: Int { start + width }
  }

  let size: ScreenSize
  let label: Column
  let value: Column
  let unit: Column
  let level: Column
  let actual: Column
  let state: Column
  let tally: Column
  /// The whole line, without the cells at both ends.
  var line: Column { Column(start: 1, width: size.columns - 2) }

  /// Distributes the columns for the given widths of labels and units.
  init(size: ScreenSize, labelWidth: Int, unitWidth: Int) {
    self.size = size
    let width = size.columns
    let isNarrow = width < 64
    let unitRoom = min(unitWidth, isNarrow ? (width < 36 ? 2 : 5) : 8)
    let valueRoom = isNarrow ? 6 : 8
    let stateRoom = width < 36 ? 5 : 12
    let labelMost =
      isNarrow ? width - 3 - valueRoom - 2 - unitRoom - 1 - stateRoom : max(16, width / 4)
    label = Column(start: isNarrow ? 2 : 3, width: max(4, min(labelWidth, labelMost)))
    value = Column(start: label.end + 1, width: valueRoom)
    unit = Column(start: value.end + (unitRoom > 0 ? 1 : 0), width: unitRoom)
    var next = unit.end + (isNarrow ? 1 : 2)
    func reserve(_ wanted: Int, from least: Int) -> Column {
      guard width >= least else { return Column(start: next, width: 0) }
      defer { next += wanted + 2 }
      return Column(start: next, width: wanted)
    }
    level = reserve(width < 140 ? 21 : 41, from: 104)
    actual = reserve(valueRoom, from: 64)
    let tallyRoom = width >= 76 ? 10 : 0
    let stateEnd = width - (isNarrow ? 0 : 1) - (tallyRoom > 0 ? tallyRoom + 2 : 0)
    // On a wide terminal the columns stay close together.
    state = Column(start: next, width: max(0, min(Self.widestState, stateEnd - next)))
    tally = Column(start: state.end + 2, width: tallyRoom)
  }
}

/// What a terminal of this size has room for.
extension ScreenSize {
  var hasHeading: Bool { rows >= 8 }
  var hasDetail: Bool { rows >= 6 }
  var hasRule: Bool { rows >= 20 }
  /// Whether an empty line separates devices.
  var hasGaps: Bool { rows >= 20 }

  /// The first row of the list.
  var listTop: Int { hasHeading ? 2 : 1 }

  var listHeight: Int {
    let below = 1 + (hasDetail ? 1 : 0) + (hasRule ? 1 : 0)
    return max(1, rows - listTop - below)
  }
}

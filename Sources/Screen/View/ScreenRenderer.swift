// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
package import LastOut

/// Draws a ``ControlScreen`` into a ``Grid``, without side effects.
///
/// The cost is proportional to the size of the terminal.
package struct ScreenRenderer: Sendable {
  let glyphs: Glyphs

  package init(glyphs: Glyphs) { self.glyphs = glyphs }

  /// Draws the screen at time `now`.
  package func grid(of screen: ControlScreen, at now: Moment) -> Grid {
    var grid = Grid(size: screen.size)
    let smallest = ScreenLayout.smallest
    guard screen.size.columns >= smallest.columns, screen.size.rows >= smallest.rows else {
      grid.put("too small", row: 0, column: 0)
      return grid
    }
    title(screen, into: &grid)
    switch screen.mode {
    case .help(let offset): help(offset, screen, into: &grid)
    case .details(let offset): details(offset, screen, into: &grid)
    case .browsing, .typing, .filtering: list(screen, at: now, into: &grid)
    }
    footer(screen, at: now, into: &grid)
    return grid
  }

  /// Draws the first line: the program's name, a summary and the connection.
  private func title(_ screen: ControlScreen, into grid: inout Grid) {
    let (text, style) = connection(screen)
    let width = CellWidth.of(text)
    let start = max(1, screen.size.columns - 1 - width)
    var column = grid.put("settle", row: 0, column: 1, style: .bold)
    let room = start - column - 3
    let summary = summary(screen).first { CellWidth.of($0) <= room }
    if let summary { column = grid.put(summary, row: 0, column: column + 2, style: .faint) }
    grid.put(text, row: 0, column: max(start, column + 1), style: style)
  }

  private func connection(_ screen: ControlScreen) -> (String, Style) {
    switch screen.link.state {
    case .connecting, .reading: ("\(glyphs.offline) connecting", .faint)
    case .ready where screen.link.isSilent:
      ("\(glyphs.offline) gateway does not answer", Style(.yellow, isBold: true))
    case .ready where screen.link.brokerTrouble != nil:
      (
        screen.size.columns < 48
          ? "\(glyphs.offline) no broker" : "\(glyphs.offline) gateway without broker",
        Style(.red, isBold: true)
      )
    case .ready: ("\(glyphs.online) connected", Style(.green))
    case .lost:
      (
        screen.size.columns < 48
          ? "\(glyphs.offline) no gateway" : "\(glyphs.offline) no gateway, trying again",
        Style(.red, isBold: true)
      )
    }
  }

  /// Texts for the number of devices, properties and pending values, the longest first.
  private func summary(_ screen: ControlScreen) -> [String] {
    let shown = screen.list.shownCount
    let open = screen.rows.pendingCount
    let dot = " \(glyphs.dot) "
    let all = count(screen.rows.deviceCount, "device", "devices")
    let properties =
      screen.list.filter.isEmpty
      ? count(shown, "property", "properties") : "\(shown) of \(screen.rows.count) properties"
    let pending = open > 0 ? "\(dot)\(open) pending" : ""
    return [all + dot + properties + pending, properties + pending, properties, ""]
  }

  private func count(_ number: Int, _ one: String, _ many: String) -> String {
    "\(number) \(number == 1 ? one : many)"
  }

  private func help(_ offset: Int, _ screen: ControlScreen, into grid: inout Grid) {
    let top = ScreenLayout.listTop(screen.size)
    let height = screen.list.height
    if ScreenLayout.hasHeading(screen.size) {
      grid.fill(row: 1, style: .heading)
      grid.put("KEYS", row: 1, column: 1, style: .heading)
    }
    for (row, line) in KeyHelp(glyphs).lines.dropFirst(offset).prefix(height).enumerated() {
      grid.put(line.keys, row: top + row, column: 1, limit: KeyHelp.keyWidth, style: .bold)
      let column = 1 + KeyHelp.keyWidth + 1
      put(
        line.meaning,
        row: top + row,
        column: column,
        width: screen.size.columns - column - 1,
        style: .plain,
        into: &grid
      )
    }
  }

  private func details(_ offset: Int, _ screen: ControlScreen, into grid: inout Grid) {
    let top = ScreenLayout.listTop(screen.size)
    if ScreenLayout.hasHeading(screen.size) {
      grid.fill(row: 1, style: .heading)
      grid.put("PROPERTY", row: 1, column: 1, style: .heading)
    }
    let lines = DetailText(screen).lines.dropFirst(offset).prefix(screen.list.height)
    for (row, line) in lines.enumerated() {
      put(
        line,
        row: top + row,
        column: 1,
        width: screen.size.columns - 2,
        style: row + offset == 0 ? .bold : .plain,
        into: &grid
      )
    }
  }

  /// Writes text into `width` cells, with an ellipsis where it is cut.
  func put(
    _ text: String,
    row: Int,
    column: Int,
    width: Int,
    alignsRight: Bool = false,
    style: Style,
    into grid: inout Grid
  ) {
    guard width > 0 else { return }
    let shown = glyphs.shown(text)
    let length = CellWidth.of(shown)
    guard length > width else {
      let start = alignsRight ? column + width - length : column
      grid.put(shown, row: row, column: start, limit: width, style: style)
      return
    }
    let end = grid.put(
      shown,
      row: row,
      column: column,
      limit: width - CellWidth.of(glyphs.ellipsis),
      style: style
    )
    grid.put(glyphs.ellipsis, row: row, column: end, style: style)
  }
}

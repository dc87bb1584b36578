// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
internal import LastOut
import Values

/// The lines below the list.
extension ScreenRenderer {
  func footer(_ screen: ControlScreen, at now: Moment, into grid: inout Grid) {
    let size = screen.size
    let keys = size.rows - 1
    if ScreenLayout.hasRule(size) { rule(screen, row: keys - 2, into: &grid) }
    let (text, style) = detail(screen)
    if ScreenLayout.hasDetail(size) {
      put(text, row: keys - 1, column: 1, width: size.columns - 2, style: style, into: &grid)
      bar(screen, row: keys, into: &grid)
    } else if screen.notice != nil || screen.mode != .browsing {
      put(text, row: keys, column: 1, width: size.columns - 2, style: style, into: &grid)
    } else {
      bar(screen, row: keys, into: &grid)
    }
  }

  /// Draws a horizontal line with the number of properties below the view.
  private func rule(_ screen: ControlScreen, row: Int, into grid: inout Grid) {
    let width = grid.size.columns
    grid.put(String(repeating: glyphs.rule, count: width), row: row, column: 0, style: .faint)
    let below = countBelow(screen)
    guard below > 0 else { return }
    let text = " \(below) more "
    grid.put(text, row: row, column: max(0, width - CellWidth.of(text) - 2), style: .faint)
  }

  /// The number of properties, or of lines of text, below those in view.
  private func countBelow(_ screen: ControlScreen) -> Int {
    switch screen.mode {
    case .help(let offset): max(0, KeyHelp.count - offset - screen.list.height)
    case .details(let offset):
      max(0, DetailText(screen).lines.count - offset - screen.list.height)
    case .browsing, .typing, .filtering: screen.list.countBelow
    }
  }

  /// The typed text, otherwise the notice, otherwise details of the selected property.
  private func detail(_ screen: ControlScreen) -> (String, Style) {
    let typed = Style(.cyan, isBold: true)
    switch screen.mode {
    case .typing(let text):
      let key = screen.list.selectedKey ?? ""
      let rule = screen.selectedRow.map { "   \(ValueFormat.rule($0.property))" } ?? ""
      return ("\(key) = \(text)_\(rule)", typed)
    case .filtering: return ("/\(screen.list.filter)_", typed)
    case .help, .details: return ("", .faint)
    case .browsing: break
    }
    if let notice = screen.notice {
      return (notice.text, notice.isError ? Style(.red, isBold: true) : .bold)
    }
    if case .lost(let reason) = screen.link.state { return (reason, .faint) }
    guard let row = screen.selectedRow else { return ("", .faint) }
    return (details(row, within: screen.size.columns - 2), .faint)
  }

  /// As many details as fit, the most important first.
  private func details(_ row: ScreenRow, within width: Int) -> String {
    var parts = [
      row.property.key, ValueFormat.rule(row.property), ValueFormat.policy(row.property),
    ]
    if row.targetDiffers {
      parts.insert("actual \(ValueFormat.text(row.actual, of: row.property))", at: 1)
    }
    if case .ended(let phase, .some(let reason), _) = row.progress {
      parts.insert("\(phase.rawValue): \(reason)", at: 1)
    } else if let tally = row.tally, row.pendingChanges == 0, tally.changes > 1 {
      let commands = tally.commands == 1 ? "1 command" : "\(tally.commands) commands"
      parts.insert("\(tally.changes) changes \(glyphs.arrow) \(commands)", at: 1)
    }
    let separator = "  \(glyphs.dot)  "
    var text = parts[0]
    for part in parts.dropFirst() where CellWidth.of(text + separator + part) <= width {
      text += separator + part
    }
    return text
  }

  // MARK: - Keys

  /// Draws the key hints; the last ones are omitted when there is no room.
  private func bar(_ screen: ControlScreen, row line: Int, into grid: inout Grid) {
    let isText =
      switch screen.mode {
      case .help, .details: true
      case .browsing, .typing, .filtering: false
      }
    let always = isText ? [("any key", "closes")] : [("?", "help"), ("q", "quit")]
    let width = screen.size.columns - 2
    var shown = hints(screen)
    while !shown.isEmpty, length(shown + always) > width { shown.removeLast() }
    var column = 1
    for (key, meaning) in shown + always {
      column = grid.put(key, row: line, column: column, style: .bold)
      column = grid.put(meaning, row: line, column: column + 1, style: .faint) + 2
    }
  }

  private func hints(_ screen: ControlScreen) -> [(String, String)] {
    switch screen.mode {
    case .typing: return [("Enter", "set"), ("Esc", "leave")]
    case .filtering: return [("Enter", "keep"), ("Esc", "undo")]
    case .help:
      return screen.list.height < KeyHelp.count ? [(glyphs.vertical, "scroll")] : []
    case .details:
      let count = DetailText(screen).lines.count
      return screen.list.height < count ? [(glyphs.vertical, "scroll")] : []
    case .browsing: break
    }
    guard let row = screen.selectedRow else { return [("/", "filter")] }
    var hints: [(String, String)] =
      switch row.property.kind {
      case .number, .integer: [(glyphs.horizontal, "step"), ("0-9", "type")]
      case .boolean: [("Space", "switch")]
      case .choice: [(glyphs.horizontal, "choose")]
      case .text, .color: [("Enter", "type")]
      case .action: [(glyphs.horizontal, "choose"), ("Space", "do")]
      }
    if let urgent = screen.rows.urgent(for: row) {
      hints.insert(("!", glyphs.shown(ValueFormat.text(urgent.value))), at: 1)
    }
    hints += [("f", "flush"), ("c", "cancel"), ("/", "filter")]
    if let notice = screen.notice, CellWidth.of(notice.text) > screen.size.columns - 2 {
      hints.insert(("i", "read it all"), at: 0)
    }
    return hints
  }

  private func length(_ hints: [(String, String)]) -> Int {
    hints.reduce(-2) { $0 + CellWidth.of($1.0) + 1 + CellWidth.of($1.1) + 2 }
  }
}

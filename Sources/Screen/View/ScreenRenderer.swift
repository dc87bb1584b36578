// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
package import LastOut
import Values

/// Draws a ``ControlScreen`` into a ``Grid``, without side effects.
///
/// The cost is proportional to the size of the terminal.
package struct ScreenRenderer {
  let screen: ControlScreen
  let glyphs: Glyphs
  /// When the screen is shown.
  let now: Moment
  let layout: ScreenLayout
  var grid: Grid

  private init(_ screen: ControlScreen, _ glyphs: Glyphs, at now: Moment) {
    self.screen = screen
    self.glyphs = glyphs
    self.now = now
    layout = ScreenLayout(
      size: screen.size,
      labelWidth: screen.rows.labelWidth,
      unitWidth: screen.rows.unitWidth
    )
    grid = Grid(size: screen.size)
  }

  /// Draws the screen at time `now`.
  package static func grid(of screen: ControlScreen, _ glyphs: Glyphs, at now: Moment) -> Grid {
    var renderer = ScreenRenderer(screen, glyphs, at: now)
    renderer.draw()
    return renderer.grid
  }

  private mutating func draw() {
    let smallest = ScreenLayout.smallest
    guard screen.size.columns >= smallest.columns, screen.size.rows >= smallest.rows else {
      grid.put("too small", row: 0, column: 0)
      return
    }
    title()
    switch screen.mode {
    case .help(let offset): help(offset)
    case .details(let offset): details(offset)
    case .browsing, .typing, .filtering: list()
    }
    footer()
  }

  /// Draws the first line: the program's name, a summary and the connection.
  private mutating func title() {
    let (text, style) = connection
    let start = max(1, screen.size.columns - 1 - CellWidth.of(text))
    var column = grid.put("settle", row: 0, column: 1, style: .bold)
    let room = start - column - 3
    let summary = summaries.first { CellWidth.of($0) <= room }
    if let summary { column = grid.put(summary, row: 0, column: column + 2, style: .faint) }
    grid.put(text, row: 0, column: max(start, column + 1), style: style)
  }

  private var connection: (String, Style) {
    let isNarrow = screen.size.columns < 48
    return switch screen.link.state {
    case .connecting, .reading: ("\(glyphs.offline) connecting", .faint)
    case .ready where screen.link.isSilent:
      ("\(glyphs.offline) gateway does not answer", Style(.yellow, isBold: true))
    case .ready where screen.link.brokerTrouble != nil:
      ("\(glyphs.offline) \(isNarrow ? "no broker" : "gateway without broker")", .alarm)
    case .ready: ("\(glyphs.online) connected", Style(.green))
    case .lost: ("\(glyphs.offline) no gateway\(isNarrow ? "" : ", trying again")", .alarm)
    }
  }

  /// Texts for the number of devices, properties and pending values, the longest first.
  private var summaries: [String] {
    let shown = screen.list.shownCount
    let open = screen.rows.pendingCount
    let dot = " \(glyphs.dot) "
    let all = CountText.text(screen.rows.deviceCount, "device")
    let properties =
      screen.list.filter.isEmpty
      ? CountText.text(shown, "property", "properties")
      : "\(shown) of \(screen.rows.count) properties"
    let pending = open > 0 ? "\(dot)\(open) pending" : ""
    return [all + dot + properties + pending, properties + pending, properties, ""]
  }

  private mutating func help(_ offset: Int) {
    heading("KEYS")
    let top = screen.size.listTop
    let start = 1 + KeyHelp.keyWidth + 1
    let meaning = ScreenLayout.Column(start: start, width: screen.size.columns - start - 1)
    let lines = KeyHelp(glyphs).lines.dropFirst(offset).prefix(screen.list.height)
    for (row, line) in lines.enumerated() {
      grid.put(line.keys, row: top + row, column: 1, limit: KeyHelp.keyWidth, style: .bold)
      put(line.meaning, row: top + row, meaning, style: .plain)
    }
  }

  private mutating func details(_ offset: Int) {
    heading("PROPERTY")
    let top = screen.size.listTop
    let lines = DetailText(screen).lines.dropFirst(offset).prefix(screen.list.height)
    for (row, line) in lines.enumerated() {
      put(line, row: top + row, layout.line, style: row + offset == 0 ? .bold : .plain)
    }
  }

  /// Begins the line of headings, if the screen has one.
  mutating func heading(_ text: String, limit: Int = .max) {
    guard screen.size.hasHeading else { return }
    grid.fill(row: 1, style: .heading)
    grid.put(text, row: 1, column: 1, limit: limit, style: .heading)
  }

  /// Writes text into a column, with an ellipsis where it is cut.
  mutating func put(
    _ text: String,
    row: Int,
    _ column: ScreenLayout.Column,
    alignsRight: Bool = false,
    style: Style
  ) {
    guard column.width > 0 else { return }
    let shown = glyphs.shown(text)
    let length = CellWidth.of(shown)
    guard length > column.width else {
      let start = alignsRight ? column.end - length : column.start
      grid.put(shown, row: row, column: start, limit: column.width, style: style)
      return
    }
    let room = column.width - CellWidth.of(glyphs.ellipsis)
    let end = grid.put(shown, row: row, column: column.start, limit: room, style: style)
    grid.put(glyphs.ellipsis, row: row, column: end, style: style)
  }
}

/// The lines below the list.
extension ScreenRenderer {
  private mutating func footer() {
    let keys = screen.size.rows - 1
    if screen.size.hasRule { rule(row: keys - 2) }
    let (text, style) = detail
    if screen.size.hasDetail {
      put(text, row: keys - 1, layout.line, style: style)
      keyHints(row: keys)
    } else if screen.notice != nil || screen.mode != .browsing {
      put(text, row: keys, layout.line, style: style)
    } else {
      keyHints(row: keys)
    }
  }

  /// Draws a horizontal line with the number of properties below the view.
  private mutating func rule(row: Int) {
    let width = screen.size.columns
    grid.put(String(repeating: glyphs.rule, count: width), row: row, column: 0, style: .faint)
    let below = countBelow
    guard below > 0 else { return }
    let text = " \(below) more "
    grid.put(text, row: row, column: max(0, width - CellWidth.of(text) - 2), style: .faint)
  }

  /// The number of properties, or of lines of text, below those in view.
  private var countBelow: Int {
    switch screen.mode {
    case .help(let offset): max(0, KeyHelp.count - offset - screen.list.height)
    case .details(let offset):
      max(0, DetailText(screen).lines.count - offset - screen.list.height)
    case .browsing, .typing, .filtering: screen.list.countBelow
    }
  }

  /// The typed text, otherwise the notice, otherwise details of the selected property.
  private var detail: (String, Style) {
    switch screen.mode {
    case .typing(let text):
      let key = screen.list.selectedKey ?? ""
      let rule = screen.selectedRow.map { "   \(ValueFormat.rule($0.property))" } ?? ""
      return ("\(key) = \(text)_\(rule)", .chosen)
    case .filtering: return ("/\(screen.list.filter)_", .chosen)
    case .help, .details: return ("", .faint)
    case .browsing: break
    }
    if let notice = screen.notice { return (notice.text, notice.isError ? .alarm : .bold) }
    if case .lost(let reason) = screen.link.state { return (reason, .faint) }
    guard let row = screen.selectedRow else { return ("", .faint) }
    return (details(of: row), .faint)
  }

  /// As many details as fit, the most important first.
  private func details(of row: ScreenRow) -> String {
    var parts = [
      row.property.key, ValueFormat.rule(row.property), ValueFormat.policy(row.property),
    ]
    if row.targetDiffers {
      parts.insert("actual \(ValueFormat.text(row.actual, of: row.property))", at: 1)
    }
    if case .ended(let phase, .some(let reason), _) = row.progress {
      parts.insert("\(phase.rawValue): \(reason)", at: 1)
    } else if let tally = row.tally, row.pendingChanges == 0, tally.changes > 1 {
      let commands = CountText.text(tally.commands, "command")
      parts.insert("\(tally.changes) changes \(glyphs.arrow) \(commands)", at: 1)
    }
    let separator = "  \(glyphs.dot)  "
    var text = parts[0]
    for part in parts.dropFirst() where CellWidth.of(text + separator + part) <= layout.line.width {
      text += separator + part
    }
    return text
  }

  // MARK: - Keys

  /// Draws the key hints; the last ones are omitted when there is no room.
  private mutating func keyHints(row line: Int) {
    let isText =
      switch screen.mode {
      case .help, .details: true
      case .browsing, .typing, .filtering: false
      }
    let always = isText ? [("any key", "closes")] : [("?", "help"), ("q", "quit")]
    var shown = hints
    while !shown.isEmpty, length(shown + always) > layout.line.width { shown.removeLast() }
    var column = 1
    for (key, meaning) in shown + always {
      column = grid.put(key, row: line, column: column, style: .bold)
      column = grid.put(meaning, row: line, column: column + 1, style: .faint) + 2
    }
  }

  private var hints: [(String, String)] {
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
    var found: [(String, String)] =
      switch row.property.kind {
      case .number, .integer: [(glyphs.horizontal, "step"), ("0-9", "type")]
      case .boolean: [("Space", "switch")]
      case .choice: [(glyphs.horizontal, "choose")]
      case .text, .color: [("Enter", "type")]
      case .action: [(glyphs.horizontal, "choose"), ("Space", "do")]
      }
    if let urgent = screen.rows.urgent(for: row) {
      found.insert(("!", glyphs.shown(ValueFormat.text(urgent.value))), at: 1)
    }
    found += [("f", "flush"), ("c", "cancel"), ("/", "filter")]
    if let notice = screen.notice, CellWidth.of(notice.text) > layout.line.width {
      found.insert(("i", "read it all"), at: 0)
    }
    return found
  }

  private func length(_ hints: [(String, String)]) -> Int {
    hints.reduce(-2) { $0 + CellWidth.of($1.0) + 1 + CellWidth.of($1.1) + 2 }
  }
}

/// The width of characters in terminal cells.
enum CellWidth {
  /// Scalars of two cells: East Asian wide and full-width forms, and emoji.
  private static let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115F, 0x231A...0x231B, 0x23E9...0x23EC, 0x2E80...0x303E, 0x3041...0x33FF,
    0x3400...0x4DBF, 0x4E00...0x9FFF, 0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3,
    0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F,
    0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x20000...0x3FFFD,
  ]

  /// The width of one character: 0, 1 or 2.
  static func of(_ character: Character) -> Int {
    guard let scalar = character.unicodeScalars.first else { return 0 }
    if scalar.value < 0x300 { return 1 }
    switch scalar.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format: return 0
    default: return wide.contains { $0.contains(scalar.value) } ? 2 : 1
    }
  }

  static func of(_ text: String) -> Int { text.reduce(0) { $0 + of($1) } }
}

/// The help text, in lines of at most forty columns.
struct KeyHelp {
  /// The number of lines, which does not depend on the glyphs.
  static let count = KeyHelp(.unicode).lines.count
  /// The width of the left column, in cells.
  static let keyWidth = 12

  let lines: [(keys: String, meaning: String)]

  init(_ glyphs: Glyphs) {
    lines = [
      ("\(glyphs.vertical)  j k", "choose a property"),
      ("\(glyphs.horizontal)  - +", "a step less, a step more"),
      ("[ ]", "ten steps; Shift too"),
      ("0-9 Enter", "type a number, set it"),
      ("Space", "switch, next word, do it"),
      ("f  F", "send now: this, all"),
      ("c", "cancel pending"),
      ("!", "stop: sent at once"),
      ("/  Esc", "filter, show all"),
      ("i", "all about it; whole errors"),
      ("q  Ctrl-C", "quit; changes go on"),
      ("", ""),
      (String(repeating: glyphs.blocks[7], count: 3) + " 0.2s", "sent when empty"),
      ("\(glyphs.tick) sent", "acknowledged"),
      ("\(glyphs.doubleTick) confirm", "the device reports it"),
      ("47 \(glyphs.arrow) 1", "changes, and commands"),
    ]
  }
}

/// The symbols that a terminal can show.
package struct Glyphs: Hashable, Sendable {
  /// The eight fill levels of a bar's cell, in ascending order.
  let blocks: [String]
  let selected: String
  let tick: String
  let doubleTick: String
  let cross: String
  let arrow: String
  let equal: String
  let dash: String
  let tilde: String
  let dot: String
  let ellipsis: String
  let rule: String
  let track: String
  let knob: String
  let ghost: String
  let online: String
  let offline: String
  let horizontal: String
  let vertical: String
  /// Whether the terminal shows characters beyond ASCII.
  let isUnicode: Bool

  /// For terminals whose locale is UTF-8.
  package static let unicode = Glyphs(
    blocks: ["▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"],
    selected: "▌",
    tick: "✓",
    doubleTick: "✓✓",
    cross: "✗",
    arrow: "→",
    equal: "=",
    dash: "–",
    tilde: "~",
    dot: "·",
    ellipsis: "…",
    rule: "─",
    track: "─",
    knob: "●",
    ghost: "○",
    online: "●",
    offline: "○",
    horizontal: "←→",
    vertical: "↑↓",
    isUnicode: true
  )

  /// For all other terminals.
  package static let ascii = Glyphs(
    blocks: ["#", "#", "#", "#", "#", "#", "#", "#"],
    selected: ">",
    tick: "ok",
    doubleTick: "OK",
    cross: "x",
    arrow: "->",
    equal: "=",
    dash: "-",
    tilde: "~",
    dot: "-",
    ellipsis: "~",
    rule: "-",
    track: "-",
    knob: "O",
    ghost: "o",
    online: "*",
    offline: "o",
    horizontal: "+-",
    vertical: "Up Down",
    isUnicode: false
  )

  /// Escapes control characters and replaces those that the terminal cannot show.
  func shown(_ text: String) -> String {
    if text.utf8.allSatisfy({ (0x20..<0x7F).contains($0) }) { return text }
    return text.unicodeScalars.reduce(into: "") { result, scalar in
      if let escape = Excerpt.escape(scalar) {
        result += escape
      } else if isUnicode || scalar.isASCII {
        result.unicodeScalars.append(scalar)
      } else {
        result += "?"
      }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import JSON
internal import LastOut
internal import Values

/// The list of properties.
extension ScreenRenderer {
  /// How long a finished command is shown in color.
  private static let freshness = Duration.seconds(5)

  func list(_ screen: ControlScreen, at now: Moment, into grid: inout Grid) {
    let layout = ScreenLayout(
      size: screen.size,
      labelWidth: screen.rows.labelWidth,
      unitWidth: screen.rows.unitWidth
    )
    if ScreenLayout.hasHeading(screen.size) { headings(layout, into: &grid) }
    let top = ScreenLayout.listTop(screen.size)
    let height = screen.list.height
    guard !screen.list.lines.isEmpty else { return empty(screen, row: top, into: &grid) }
    for (offset, line) in screen.list.lines.dropFirst(screen.list.firstLine).prefix(height)
      .enumerated()
    {
      switch line {
      case .gap: break
      case .device(let index): device(screen.rows[index], row: top + offset, into: &grid)
      case .property(let index):
        // The first line always shows the device of the properties below.
        if offset == 0, height > 1 {
          device(screen.rows[index], row: top, into: &grid)
        } else {
          property(screen, index, layout, at: now, row: top + offset, into: &grid)
        }
      }
    }
  }

  private func headings(_ layout: ScreenLayout, into grid: inout Grid) {
    grid.fill(row: 1, style: .heading)
    func put(_ text: String, _ column: ScreenLayout.Column, alignsRight: Bool = false) {
      self.put(
        text,
        row: 1,
        column: column.start,
        width: column.width,
        alignsRight: alignsRight,
        style: .heading,
        into: &grid
      )
    }
    grid.put("PROPERTY", row: 1, column: 1, limit: layout.label.end - 1, style: .heading)
    put("TARGET", layout.value, alignsRight: true)
    put("ACTUAL", layout.actual, alignsRight: true)
    put("STATE", layout.state)
    put("CHANGES", layout.tally, alignsRight: true)
  }

  private func empty(_ screen: ControlScreen, row: Int, into grid: inout Grid) {
    let text =
      switch screen.link.state {
      case .connecting, .reading: "reading the devices\(glyphs.ellipsis)"
      case .lost(let reason): reason
      case .ready where screen.rows.isEmpty: "the gateway has no devices"
      case .ready: "nothing matches \"\(screen.list.filter)\""
      }
    put(
      text,
      row: row + 1,
      column: 2,
      width: screen.size.columns - 3,
      style: .faint,
      into: &grid
    )
  }

  private func device(_ row: ScreenRow, row line: Int, into grid: inout Grid) {
    put(
      row.property.deviceName,
      row: line,
      column: 1,
      width: grid.size.columns - 2,
      style: .bold,
      into: &grid
    )
  }

  private func property(
    _ screen: ControlScreen,
    _ index: Int,
    _ layout: ScreenLayout,
    at now: Moment,
    row line: Int,
    into grid: inout Grid
  ) {
    let row = screen.rows[index]
    let isSelected = row.property.key == screen.list.selectedKey
    let isKnown = screen.link.state == .ready
    if isSelected {
      let column = layout.label.start - 2
      grid.put(glyphs.selected, row: line, column: column, style: Style(.cyan, isBold: true))
    }
    put(
      row.label,
      row: line,
      column: layout.label.start,
      width: layout.label.width,
      style: isSelected ? Style(.cyan, isBold: true) : isKnown ? .plain : .faint,
      into: &grid
    )
    value(screen, row, layout, isSelected: isSelected, row: line, into: &grid)
    if layout.actual.width > 0, row.targetDiffers {
      put(
        ValueFormat.text(row.actual, of: row.property),
        row: line,
        column: layout.actual.start,
        width: layout.actual.width,
        alignsRight: true,
        style: .faint,
        into: &grid
      )
    }
    level(row, layout, row: line, into: &grid)
    guard isKnown else { return }
    let isBrokerAway = screen.link.brokerTrouble != nil
    state(row, layout.state, isBrokerAway: isBrokerAway, at: now, row: line, into: &grid)
    tally(row, layout.tally, row: line, into: &grid)
  }

  private func value(
    _ screen: ControlScreen,
    _ row: ScreenRow,
    _ layout: ScreenLayout,
    isSelected: Bool,
    row line: Int,
    into grid: inout Grid
  ) {
    var text = ValueFormat.text(row.target ?? row.actual, of: row.property)
    var style = isSelected ? Style.bold : .plain
    if case .action(let words) = row.property.kind {
      // The word that is chosen next is shown where it can be chosen.
      let isChoosing = isSelected && row.chosenWord < words.count
      text = isChoosing ? words[row.chosenWord] : ValueFormat.text(row.lastSent)
      if !isSelected { style = .faint }
    } else if row.target == nil && row.actual == nil || screen.link.state != .ready {
      style = .faint
    }
    if isSelected, case .typing(let typed) = screen.mode {
      (text, style) = (typed + "_", Style(.cyan, isBold: true))
    }
    put(
      text,
      row: line,
      column: layout.value.start,
      width: layout.value.width,
      alignsRight: true,
      style: style,
      into: &grid
    )
    grid.put(
      glyphs.shown(row.property.kind.numberRule?.shownUnit ?? ""),
      row: line,
      column: layout.unit.start,
      limit: layout.unit.width,
      style: .faint
    )
  }

  /// Draws the target within its range, and the actual value if it differs.
  private func level(
    _ row: ScreenRow,
    _ layout: ScreenLayout,
    row line: Int,
    into grid: inout Grid
  ) {
    let column = layout.level
    guard column.width > 0, let rule = row.property.kind.numberRule, let range = rule.shownRange,
      range.upperBound > range.lowerBound
    else { return }
    grid.put(
      String(repeating: glyphs.track, count: column.width),
      row: line,
      column: column.start,
      style: .faint
    )
    func mark(_ value: JSONValue?, _ glyph: String, _ style: Style) {
      guard let number = value?.double.map({ rule.shown($0).number }) else { return }
      let part = (number - range.lowerBound) / (range.upperBound - range.lowerBound)
      let index = Int((min(max(part, 0), 1) * Double(column.width - 1)).rounded())
      grid.put(glyph, row: line, column: column.start + index, style: style)
    }
    if row.targetDiffers { mark(row.actual, glyphs.ghost, .plain) }
    mark(row.target ?? row.actual, glyphs.knob, Style(.cyan))
  }

  // MARK: - State

  private func state(
    _ row: ScreenRow,
    _ column: ScreenLayout.Column,
    isBrokerAway: Bool,
    at now: Moment,
    row line: Int,
    into grid: inout Grid
  ) {
    if case .settling(let countdown) = row.progress {
      return bar(countdown, column, at: now, row: line, into: &grid)
    }
    let (text, style) = words(row, isBrokerAway: isBrokerAway, within: column.width, at: now)
    put(text, row: line, column: column.start, width: column.width, style: style, into: &grid)
  }

  /// Draws a bar that empties, and the remaining time.
  private func bar(
    _ countdown: Countdown,
    _ column: ScreenLayout.Column,
    at now: Moment,
    row line: Int,
    into grid: inout Grid
  ) {
    let time = ValueFormat.time(countdown.remaining(at: now))
    let room = column.width - 5
    let width = min(max(room, 0), 16)
    if width >= 3 {
      let eighths = Int((countdown.fraction(at: now) * Double(width * 8)).rounded(.up))
      let full = String(repeating: glyphs.blocks[7], count: eighths / 8)
      let rest = eighths % 8 > 0 ? glyphs.blocks[eighths % 8 - 1] : ""
      grid.put(full + rest, row: line, column: column.start, limit: width, style: Style(.yellow))
    }
    let start = width >= 3 ? column.start + width + 1 : column.start
    grid.put(time, row: line, column: start, limit: column.end - start, style: .faint)
  }

  private func words(
    _ row: ScreenRow,
    isBrokerAway: Bool,
    within width: Int,
    at now: Moment
  ) -> (String, Style) {
    switch row.progress {
    case .idle, .settling: return ("", .plain)
    case .querying: return ("\(glyphs.dot) asking the device", Style(.yellow))
    case .waiting(let waits, let until):
      let time = until.map { " " + ValueFormat.time(now.duration(to: $0)) } ?? ""
      return switch waits {
      case .quiet: ("\(glyphs.dot) settling", Style(.yellow))
      case .lane: ("\(glyphs.dot) lane\(time)", Style(.yellow))
      case .inFlight: ("\(glyphs.dot) in flight", Style(.yellow))
      case .unknown: ("\(glyphs.dot) availability?", Style(.yellow))
      case .asleep: ("\(glyphs.dot) asleep\(time)", Style(.yellow))
      case .offline:
        (offline(isBrokerAway ? "broker" : "device", time, within: width), Style(.red))
      }
    case .sending: return ("\(glyphs.arrow) sending", Style(.cyan))
    case .sent: return ("\(glyphs.tick) sent", Style(.cyan))
    case .ended(let phase, let reason, let at):
      let isFresh = at.duration(to: now) < Self.freshness
      return ended(phase, reason, isFresh: isFresh)
    }
  }

  /// Who is offline, and how long the value waits for it at most.
  private func offline(_ what: String, _ time: String, within width: Int) -> String {
    let text = "\(glyphs.dot) \(what) offline\(time)"
    return CellWidth.of(text) <= width ? text : "\(glyphs.dot) \(what)\(time)"
  }

  private func ended(_ phase: Phase, _ reason: String?, isFresh: Bool) -> (String, Style) {
    func calm(_ color: Style.Color) -> Style { isFresh ? Style(color) : .faint }
    let because = reason.map { ": \($0)" } ?? ""
    return switch phase {
    case .accepted, .sending: ("", .plain)
    case .sent: ("\(glyphs.tick) sent", calm(.green))
    case .confirmed: ("\(glyphs.doubleTick) confirmed", calm(.green))
    case .unchanged: ("\(glyphs.equal) unchanged", calm(.green))
    case .cancelled: ("\(glyphs.dash) cancelled\(because)", calm(.yellow))
    case .superseded: ("\(glyphs.tilde) \(reason ?? "superseded")", calm(.yellow))
    case .failed: ("\(glyphs.cross) failed\(because)", Style(.red))
    case .expired: ("\(glyphs.cross) expired\(because)", Style(.red))
    case .rejected: ("\(glyphs.cross) \(reason ?? "refused")", Style(.red))
    }
  }

  private func tally(
    _ row: ScreenRow,
    _ column: ScreenLayout.Column,
    row line: Int,
    into grid: inout Grid
  ) {
    var text = ""
    var style = Style.faint
    if row.pendingChanges > 0 {
      text = "\(row.pendingChanges)"
      style = Style(.yellow)
    } else if let tally = row.tally {
      text = "\(tally.changes) \(glyphs.arrow) \(tally.commands)"
    }
    put(
      text,
      row: line,
      column: column.start,
      width: column.width,
      alignsRight: true,
      style: style,
      into: &grid
    )
  }
}

/// The appearance of a cell's character.
package struct Style: Hashable, Sendable {
  /// A color of the terminal's palette; `plain` is its default color.
  package enum Color: UInt8, Hashable, Sendable, CaseIterable {
    case plain, red, green, yellow, blue, magenta, cyan
  }

  package var color: Color
  package var isBold: Bool
  package var isFaint: Bool
  package var isReverse: Bool

  package init(
    _ color: Color = .plain,
    isBold: Bool = false,
    isFaint: Bool = false,
    isReverse: Bool = false
  ) {
    self.color = color
    self.isBold = isBold
    self.isFaint = isFaint
    self.isReverse = isReverse
  }

  static let plain = Style()
  static let bold = Style(isBold: true)
  static let faint = Style(isFaint: true)
  static let heading = Style(.cyan, isReverse: true)
}

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

  mutating func list() {
    headings()
    let top = screen.size.listTop
    let height = screen.list.height
    guard !screen.list.lines.isEmpty else { return empty(row: top + 1) }
    let lines = screen.list.lines.dropFirst(screen.list.firstLine).prefix(height)
    for (offset, line) in lines.enumerated() {
      switch line {
      case .gap: break
      case .device(let index): device(screen.rows[index], row: top + offset)
      case .property(let index):
        // The first line always shows the device of the properties below.
        if offset == 0, height > 1 {
          device(screen.rows[index], row: top)
        } else {
          property(screen.rows[index], row: top + offset)
        }
      }
    }
  }

  private mutating func headings() {
    guard screen.size.hasHeading else { return }
    heading("PROPERTY", limit: layout.label.end - 1)
    put("TARGET", row: 1, layout.value, alignsRight: true, style: .heading)
    put("ACTUAL", row: 1, layout.actual, alignsRight: true, style: .heading)
    put("STATE", row: 1, layout.state, style: .heading)
    put("CHANGES", row: 1, layout.tally, alignsRight: true, style: .heading)
  }

  private mutating func empty(row: Int) {
    let text =
      switch screen.link.state {
      case .connecting, .reading: "reading the devices\(glyphs.ellipsis)"
      case .lost(let reason): reason
      case .ready where screen.rows.isEmpty: "the gateway has no devices"
      case .ready: "nothing matches \"\(screen.list.filter)\""
      }
    let column = ScreenLayout.Column(start: 2, width: screen.size.columns - 3)
    put(text, row: row, column, style: .faint)
  }

  private mutating func device(_ row: ScreenRow, row line: Int) {
    put(row.property.deviceName, row: line, layout.line, style: .bold)
  }

  private mutating func property(_ row: ScreenRow, row line: Int) {
    let isSelected = row.property.key == screen.list.selectedKey
    let isKnown = screen.link.state == .ready
    if isSelected {
      grid.put(glyphs.selected, row: line, column: layout.label.start - 2, style: .chosen)
    }
    let style: Style = isSelected ? .chosen : isKnown ? .plain : .faint
    put(row.label, row: line, layout.label, style: style)
    value(of: row, isSelected: isSelected, row: line)
    if row.targetDiffers {
      let actual = ValueFormat.text(row.actual, of: row.property)
      put(actual, row: line, layout.actual, alignsRight: true, style: .faint)
    }
    level(of: row, row: line)
    guard isKnown else { return }
    state(of: row, row: line)
    tally(of: row, row: line)
  }

  private mutating func value(of row: ScreenRow, isSelected: Bool, row line: Int) {
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
      (text, style) = (typed + "_", .chosen)
    }
    put(text, row: line, layout.value, alignsRight: true, style: style)
    let unit = glyphs.shown(row.property.kind.numberRule?.shownUnit ?? "")
    let column = layout.unit
    grid.put(unit, row: line, column: column.start, limit: column.width, style: .faint)
  }

  /// Draws the target within its range, and the actual value if it differs.
  private mutating func level(of row: ScreenRow, row line: Int) {
    let column = layout.level
    guard column.width > 0, let rule = row.property.kind.numberRule, let range = rule.shownRange,
      range.upperBound > range.lowerBound
    else { return }
    let track = String(repeating: glyphs.track, count: column.width)
    grid.put(track, row: line, column: column.start, style: .faint)
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

  private mutating func state(of row: ScreenRow, row line: Int) {
    if case .settling(let countdown) = row.progress { return bar(countdown, row: line) }
    let (text, style) = words(about: row)
    put(text, row: line, layout.state, style: style)
  }

  /// Draws a bar that empties, and the remaining time.
  private mutating func bar(_ countdown: Countdown, row line: Int) {
    let column = layout.state
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

  private func words(about row: ScreenRow) -> (String, Style) {
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
      case .offline: (offline(time), Style(.red))
      }
    case .sending: return ("\(glyphs.arrow) sending", Style(.cyan))
    case .sent: return ("\(glyphs.tick) sent", Style(.cyan))
    case .ended(let phase, let reason, let at):
      let isFresh = at.duration(to: now) < Self.freshness
      return ended(phase, reason, isFresh: isFresh)
    }
  }

  /// Who is offline, and how long the value waits for it at most.
  private func offline(_ time: String) -> String {
    let what = screen.link.brokerTrouble == nil ? "device" : "broker"
    let text = "\(glyphs.dot) \(what) offline\(time)"
    return CellWidth.of(text) <= layout.state.width ? text : "\(glyphs.dot) \(what)\(time)"
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

  private mutating func tally(of row: ScreenRow, row line: Int) {
    if row.pendingChanges > 0 {
      let text = "\(row.pendingChanges)"
      put(text, row: line, layout.tally, alignsRight: true, style: Style(.yellow))
    } else if let tally = row.tally {
      let text = "\(tally.changes) \(glyphs.arrow) \(tally.commands)"
      put(text, row: line, layout.tally, alignsRight: true, style: .faint)
    }
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
  static let chosen = Style(.cyan, isBold: true)
  static let alarm = Style(.red, isBold: true)
}

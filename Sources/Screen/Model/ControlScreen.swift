// Settle
// SPDX-License-Identifier: Apache-2.0

package import Control
internal import Devices
internal import JSON
package import LastOut
import Values

/// The state of the full-screen stepper: keys, replies and ticks go in, requests come out.
///
/// It owns no terminal, socket or clock. The caller passes each event with its time, sends the
/// requests from ``dequeueRequests()``, draws the screen with ``ScreenRenderer``, and calls
/// ``advance(to:)`` no later than ``nextTick(after:)``.
package struct ControlScreen: Sendable {
  /// The input mode, which decides what keys do.
  package enum Mode: Hashable, Sendable {
    case browsing
    /// Typing a value for the selected property.
    case typing(String)
    /// Typing the filter; Escape restores `previous`.
    case filtering(previous: String)
    /// Showing the help, scrolled down by `offset` lines.
    case help(offset: Int)
    /// Showing everything about the selected property, scrolled down by `offset` lines.
    case details(offset: Int)
  }

  /// A message that is shown for a few seconds.
  package struct Notice: Hashable, Sendable {
    package let text: String
    package let isError: Bool
    let until: Moment
  }

  package internal(set) var rows = RowTable()
  package internal(set) var list: RowList
  package internal(set) var link: ScreenLink
  package internal(set) var mode = Mode.browsing
  package internal(set) var notice: Notice?
  /// The error that was shown last.
  private(set) var lastError: String?
  package private(set) var size: ScreenSize
  /// Whether the user has quit.
  package private(set) var isDone = false

  /// Creates a screen that is not connected.
  ///
  /// `name` is the prefix of its changes' identifiers and must be unique among all clients.
  package init(name: String, size: ScreenSize, filter: String = "") {
    self.size = size
    link = ScreenLink(name: name)
    list = RowList(size: size, filter: filter)
  }

  /// Removes and returns the requests to send, in order.
  package mutating func dequeueRequests() -> [ControlRequest] {
    link.dequeueRequests()
  }

  /// Handles a new size of the terminal.
  package mutating func resize(to size: ScreenSize) {
    self.size = size
    list.resize(to: size, rows)
  }

  /// Ends the screen.
  package mutating func quit() { isDone = true }

  /// The selected property.
  package var selectedRow: ScreenRow? { selectedIndex.map { rows[$0] } }

  var selectedIndex: Int? { list.selectedKey.flatMap(rows.index(of:)) }

  mutating func show(_ text: String, isError: Bool = false, at now: Moment) {
    if isError { lastError = text }
    let time = Duration.seconds(isError ? 6 : 3)
    notice = Notice(text: text, isError: isError, until: now.advanced(by: time))
  }
}

/// The size of a terminal, in cells.
package struct ScreenSize: Hashable, Sendable {
  package var columns: Int
  package var rows: Int

  package init(columns: Int, rows: Int) {
    self.columns = columns
    self.rows = rows
  }
}

/// Key presses that become requests to the gateway.
extension ControlScreen {
  /// Changes the selected value by `count` of the property's steps.
  mutating func step(by count: Int, at now: Moment) {
    guard let index = selectedIndex, isChangeable(at: now) else { return }
    let row = rows[index]
    switch row.property.kind {
    case .action(let words):
      guard !words.isEmpty else { return }
      let shift = count.signum() + words.count
      rows[index].chosenWord = (row.chosenWord + shift) % words.count
    case .text, .color: show("Enter types a new value", at: now)
    case .number, .integer:
      guard let base = row.target ?? row.actual else {
        // The gateway knows the value, or asks the device for it.
        return change(to: nil, .step(.number(row.property.amount(ofSteps: count))), at: now)
      }
      move(from: base, by: count, at: now)
    case .boolean, .choice:
      move(from: row.target ?? row.actual ?? .null, by: count.signum(), at: now)
    }
  }

  private mutating func move(from base: JSONValue, by count: Int, at now: Moment) {
    guard let row = selectedRow, let value = row.property.value(from: base, steps: count) else {
      return
    }
    if value == base, row.target != nil {
      if let rule = row.property.kind.numberRule {
        show("the range is \(rule.shownAllowed)", at: now)
      }
      return
    }
    change(to: value, .set(value), at: now)
  }

  /// Toggles a boolean, selects the next word of a choice, or triggers an action.
  mutating func toggle(at now: Moment) {
    guard let row = selectedRow, isChangeable(at: now) else { return }
    switch row.property.kind {
    case .boolean:
      guard case .boolean(let flag) = row.target ?? row.actual else {
        return change(to: nil, .toggle, at: now)
      }
      change(to: .boolean(!flag), .set(.boolean(!flag)), at: now)
    case .choice: step(by: 1, at: now)
    case .action(let words):
      guard row.chosenWord < words.count else { return enter(at: now) }
      let value = JSONValue.string(words[row.chosenWord])
      change(to: value, .set(value), at: now)
    case .number, .integer, .text, .color: enter(at: now)
    }
  }

  /// Starts typing a value, or toggles a property that has no typed values.
  mutating func enter(at now: Moment) {
    guard let row = selectedRow, isChangeable(at: now) else { return }
    switch row.property.kind {
    case .boolean, .choice: toggle(at: now)
    case .action(let words) where !words.isEmpty: toggle(at: now)
    case .number, .integer, .text, .color, .action: mode = .typing("")
    }
  }

  /// Requests a change of the selected property.
  ///
  /// `value` is the new target, or `nil` when the gateway computes it.
  mutating func change(
    to value: JSONValue?,
    _ operation: ControlRequest.Operation,
    at now: Moment
  ) {
    guard let index = selectedIndex else { return }
    change(index, to: value, operation, at: now)
  }

  private mutating func change(
    _ index: Int,
    to value: JSONValue?,
    _ operation: ControlRequest.Operation,
    at now: Moment
  ) {
    guard isReady(at: now) else { return }
    link.requestChange(operation, of: rows[index].property.key)
    rows[index].recordRequest(value, at: now)
    notice = nil
  }

  /// Requests a flush or a cancellation.
  mutating func requestRemoval(
    _ operation: ControlRequest.Operation,
    of pattern: String?,
    at now: Moment
  ) {
    guard let pattern, isReady(at: now) else { return }
    link.requestRemoval(operation, of: pattern)
  }

  /// Sends the urgent value that stops the selected property.
  mutating func stop(at now: Moment) {
    guard let row = selectedRow else { return }
    guard let (index, value) = rows.urgent(for: row) else {
      return show("\(row.property.deviceName) has nothing that stops it", at: now)
    }
    change(index, to: value, .set(value), at: now)
    if rows[index].property.key != row.property.key {
      show("\(rows[index].property.key) \(ValueFormat.text(value)), at once", at: now)
    }
  }

  /// Whether the selected property has commands; says so if not.
  mutating func isChangeable(at now: Moment) -> Bool {
    guard let row = selectedRow, row.property.isReadOnly else { return true }
    show("\(row.label) is read-only: only the device changes it", at: now)
    return false
  }

  private mutating func isReady(at now: Moment) -> Bool {
    if link.state == .ready { return true }
    show("no gateway: nothing was changed", isError: true, at: now)
    return false
  }
}

/// The meaning of keys in each mode.
extension ControlScreen {
  /// Handles a key press.
  package mutating func press(_ key: ScreenKey, at now: Moment) {
    switch mode {
    case .browsing: browse(key, at: now)
    case .typing(let text): type(key, into: text, at: now)
    case .filtering(let previous): editFilter(key, previous: previous)
    case .help(let offset): scroll(key, from: offset, of: KeyHelp.count) { .help(offset: $0) }
    case .details(let offset):
      scroll(key, from: offset, of: DetailText(self).lines.count) { .details(offset: $0) }
    }
  }

  private mutating func browse(_ key: ScreenKey, at now: Moment) {
    switch key {
    case .up, .character("k"): list.move(by: -1, rows)
    case .down, .character("j"): list.move(by: 1, rows)
    case .pageUp: list.move(by: -max(1, list.height - 1), rows)
    case .pageDown: list.move(by: max(1, list.height - 1), rows)
    case .home, .character("g"): list.move(by: -rows.count, rows)
    case .end, .character("G"): list.move(by: rows.count, rows)
    case .right, .character("+"), .character("="), .character("l"): step(by: 1, at: now)
    case .left, .character("-"), .character("h"): step(by: -1, at: now)
    case .farRight, .character("]"), .character("L"): step(by: 10, at: now)
    case .farLeft, .character("["), .character("H"): step(by: -10, at: now)
    case .character(" "): toggle(at: now)
    case .enter: enter(at: now)
    case .character("f"): requestRemoval(.flush, of: list.selectedKey, at: now)
    case .character("F"): requestRemoval(.flush, of: "*", at: now)
    case .character("c"): requestRemoval(.cancel, of: list.selectedKey, at: now)
    case .character("!"): stop(at: now)
    case .character("/"): mode = .filtering(previous: list.filter)
    case .character("?"): mode = .help(offset: 0)
    case .character("i"): mode = .details(offset: 0)
    case .character("q"): quit()
    case .escape:
      list.filter = ""
      notice = nil
      list.update(rows)
    case .character(let character) where character.isNumber || ".#".contains(character):
      startTyping(String(character), at: now)
    case .backspace, .redraw, .character: break
    }
  }

  // MARK: - Typing

  private mutating func startTyping(_ text: String, at now: Moment) {
    guard let row = selectedRow, isChangeable(at: now) else { return }
    switch row.property.kind {
    case .number, .integer: if text != "#" { mode = .typing(text) }
    case .text, .color: mode = .typing(text)
    case .action(let words) where words.isEmpty: mode = .typing(text)
    case .boolean, .choice, .action: break
    }
  }

  private mutating func type(_ key: ScreenKey, into text: String, at now: Moment) {
    switch key {
    case .escape: mode = .browsing
    case .backspace: mode = text.isEmpty ? .browsing : .typing(String(text.dropLast()))
    case .enter:
      mode = .browsing
      guard !text.isEmpty, let row = selectedRow else { return }
      let (value, mistake) = row.property.value(typed: text)
      if let value { change(to: value, .set(value), at: now) }
      if let mistake { show(mistake, isError: true, at: now) }
    case .character(let character): mode = .typing(text + String(character))
    case .up, .down, .left, .right, .farLeft, .farRight, .pageUp, .pageDown, .home, .end, .redraw:
      break
    }
  }

  private mutating func editFilter(_ key: ScreenKey, previous: String) {
    switch key {
    case .escape:
      list.filter = previous
      mode = .browsing
    case .enter: mode = .browsing
    case .backspace:
      if list.filter.isEmpty { mode = .browsing } else { list.filter.removeLast() }
    case .character(let character): list.filter.append(character)
    case .up: return list.move(by: -1, rows)
    case .down: return list.move(by: 1, rows)
    case .left, .right, .farLeft, .farRight, .pageUp, .pageDown, .home, .end, .redraw: return
    }
    list.update(rows)
  }

  /// Scrolls `count` lines of text; a key that does not scroll closes it.
  private mutating func scroll(
    _ key: ScreenKey,
    from offset: Int,
    of count: Int,
    _ mode: (Int) -> Mode
  ) {
    let last = max(0, count - list.height)
    let page = max(1, list.height - 1)
    let wanted: Int
    switch key {
    case .down, .character("j"): wanted = offset + 1
    case .up, .character("k"): wanted = offset - 1
    case .pageDown, .character(" "): wanted = offset + page
    case .pageUp: wanted = offset - page
    case .home, .character("g"): wanted = 0
    case .end, .character("G"): wanted = last
    case .redraw: return
    case .left, .right, .farLeft, .farRight, .enter, .escape, .backspace, .character:
      self.mode = .browsing
      return
    }
    self.mode = mode(min(max(wanted, 0), last))
  }
}

/// The passage of time.
extension ControlScreen {
  /// How often a moving bar is drawn.
  private static let frameInterval = Duration.milliseconds(50)
  /// How long after its due time a settling value is read from the gateway.
  private static let overdueAfter = Duration.milliseconds(200)

  /// Handles the passage of time until `now`.
  package mutating func advance(to now: Moment) {
    if let until = notice?.until, now >= until { notice = nil }
    if link.advance(to: now) { refresh(at: now) }
  }

  /// The latest time for the next call of ``advance(to:)``.
  package func nextTick(after now: Moment) -> Moment {
    var next = now.advanced(by: .seconds(60))
    if let until = notice?.until { next = min(next, until) }
    if let tick = link.nextTick(after: now) { next = min(next, tick) }
    if link.state == .ready, isMoving(at: now) {
      next = min(next, now.advanced(by: Self.frameInterval))
    }
    return max(next, now)
  }

  private mutating func refresh(at now: Moment) {
    var devices: [String] = []
    var pending: Set<String> = []
    link.request(.status, "", RequestID.status, at: now)
    for index in list.visibleIndices {
      let id = rows[index].deviceID
      if devices.last != id { devices.append(id) }
      if needsPending(rows[index], at: now) { pending.insert(id) }
    }
    for id in devices {
      if pending.contains(id) { link.request(.pending, "\(id)/*", RequestID.pending, at: now) }
      link.request(.get, "\(id)/*", RequestID.get, at: now)
    }
  }

  /// Whether the screen must read what a pending value waits for.
  private func needsPending(_ row: ScreenRow, at now: Moment) -> Bool {
    switch row.progress {
    case .settling(let countdown):
      countdown.due.duration(to: now) >= Self.overdueAfter
    case .waiting: true
    case .ended, .idle, .sending, .sent, .querying: false
    }
  }

  private func isMoving(at now: Moment) -> Bool {
    list.visibleIndices.contains { index in
      guard case .settling(let countdown) = rows[index].progress else { return false }
      return countdown.due.duration(to: now) < Self.overdueAfter
    }
  }
}

/// Input from a terminal library: a key that it recognizes, or a character.
package enum KeyInput: Hashable, Sendable {
  case key(ScreenKey)
  case scalar(Unicode.Scalar)

  /// Decodes the inputs of one read.
  ///
  /// An escape sequence that the terminal library does not recognize counts as one key. An unknown
  /// sequence is ignored, so that its letters do not act as commands.
  package static func keys(_ inputs: [KeyInput]) -> [ScreenKey] {
    var keys: [ScreenKey] = []
    var rest = inputs[...]
    while let input = rest.popFirst() {
      switch input {
      case .key(let key): keys.append(key)
      case .scalar("\u{1B}"): if let key = sequence(&rest) { keys.append(key) }
      case .scalar(let scalar): if let key = key(scalar) { keys.append(key) }
      }
    }
    return keys
  }

  /// Consumes the rest of an escape sequence; a lone Escape is the key itself.
  private static func sequence(_ rest: inout ArraySlice<KeyInput>) -> ScreenKey? {
    guard case .scalar(let first) = rest.first, first == "[" || first == "O" else {
      return .escape
    }
    rest.removeFirst()
    var isPlain = true
    while case .scalar(let scalar) = rest.first {
      rest.removeFirst()
      // Numeric parameters precede the letter that ends the sequence.
      if (0x40...0x7E).contains(scalar.value) { return isPlain ? arrow(scalar) : nil }
      isPlain = false
    }
    return nil
  }

  private static func arrow(_ scalar: Unicode.Scalar) -> ScreenKey? {
    switch scalar {
    case "A": .up
    case "B": .down
    case "C": .right
    case "D": .left
    case "H": .home
    case "F": .end
    default: nil
    }
  }

  private static func key(_ scalar: Unicode.Scalar) -> ScreenKey? {
    switch scalar.value {
    case 0x0A, 0x0D: .enter
    case 0x08, 0x7F: .backspace
    case 0x0C: .redraw
    case 0..<0x20, 0x80..<0xA0: nil
    default: .character(Character(scalar))
    }
  }
}

/// A key press.
package enum ScreenKey: Hashable, Sendable {
  case up, down, left, right
  /// With Shift: ten steps at once.
  case farLeft, farRight
  case pageUp, pageDown, home, end
  case enter, escape, backspace
  /// Ctrl-L, which makes the program draw the whole screen again.
  case redraw
  case character(Character)
}

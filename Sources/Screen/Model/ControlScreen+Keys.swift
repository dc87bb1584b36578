// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
package import LastOut
import Values

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

// Settle
// SPDX-License-Identifier: Apache-2.0

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

// Settle
// SPDX-License-Identifier: Apache-2.0

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
      if let escape = CellWidth.escape(scalar) {
        result += escape
      } else if isUnicode || scalar.isASCII {
        result.unicodeScalars.append(scalar)
      } else {
        result += "?"
      }
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

extension TimelinePlot {
  /// The marks that a terminal can show.
  package struct Marks: Sendable {
    /// No change, and then more and more of them.
    let bars: [Character]
    let command: Character
    let ellipsis: Character
    let isASCII: Bool

    /// For terminals whose locale is UTF-8.
    package static let unicode = Marks(
      bars: Array(" ▁▂▃▄▅▆▇█"),
      command: "●",
      ellipsis: "…",
      isASCII: false
    )
    /// For all other terminals.
    package static let ascii = Marks(
      bars: Array(" .:-=+*#@"),
      command: "o",
      ellipsis: "~",
      isASCII: true
    )

    func bar(_ count: Int, of most: Int) -> Character {
      guard count > 0, most > 0 else { return bars[0] }
      return bars[max(1, (count * (bars.count - 1) + most - 1) / most)]
    }

    /// `text`, cut or filled up to `count` characters.
    func padded(_ text: String, to count: Int) -> String {
      let text = shown(text)
      return text.count > count
        ? text.prefix(max(0, count - 1)) + String(ellipsis)
        : text + String(repeating: " ", count: count - text.count)
    }

    /// `text` with `?` for what cannot be shown.
    func shown(_ text: String) -> String {
      isASCII ? String(text.map { $0.isASCII ? $0 : "?" }) : text
    }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// The demo's output: permanent lines, and a status line at the bottom.
package struct DemoScreen {
  package enum Color: String, Sendable {
    case cyan = "36"
    case green = "32"
    case red = "31"
    case faint = "2"
    case bold = "1"
  }

  /// A piece of a line.
  package struct Piece: Sendable {
    var text: String
    var color: Color?

    package init(_ text: String, _ color: Color? = nil) {
      self.text = text
      self.color = color
    }
  }

  /// Whether the last line may be rewritten.
  package let isInteractive: Bool
  package let hasColor: Bool
  /// In columns.
  package let width: Int
  private let write: (String) -> Void
  private var hasStatus = false

  package init(
    isInteractive: Bool,
    hasColor: Bool,
    width: Int,
    write: @escaping (String) -> Void
  ) {
    self.isInteractive = isInteractive
    self.hasColor = hasColor
    self.width = width
    self.write = write
  }

  /// Prints a permanent line.
  ///
  /// With `isCut`, it is cut to the width of a terminal.
  package mutating func line(_ pieces: [Piece], isCut: Bool = false) {
    clearStatus()
    write(render(pieces, isCut: isCut) + "\n")
  }

  package mutating func line(_ text: String = "", _ color: Color? = nil) {
    line([Piece(text, color)])
  }

  /// Shows a status line, which the next line replaces; does nothing without a terminal.
  package mutating func status(_ pieces: [Piece]) {
    guard isInteractive else { return }
    write("\r\u{1B}[K" + render(pieces, isCut: true))
    hasStatus = true
  }

  package mutating func clearStatus() {
    guard hasStatus else { return }
    write("\r\u{1B}[K")
    hasStatus = false
  }

  private func render(_ pieces: [Piece], isCut: Bool) -> String {
    var room = isInteractive && isCut ? width - 1 : .max
    var result = ""
    for piece in pieces where room > 0 {
      var text = piece.text
      if text.count > room { text = String(text.prefix(room - 1)) + "…" }
      room -= text.count
      if hasColor, let color = piece.color {
        result += "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
      } else {
        result += text
      }
    }
    return result
  }
}

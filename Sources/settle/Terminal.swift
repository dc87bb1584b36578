// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Glibc
import Values

/// The properties of standard output, colors on it, and messages beside it.
enum Terminal {
  enum Color: String {
    case green = "32"
    case yellow = "33"
    case red = "31"
    case cyan = "36"
    case faint = "2"
    case bold = "1"
  }

  /// Whether standard output is a terminal.
  static let isInteractive = isatty(STDOUT_FILENO) == 1

  /// Whether standard output is a terminal with colors, and `NO_COLOR` is not set.
  static let hasColor =
    isInteractive && (SocketPath.environment("NO_COLOR") ?? "").isEmpty
    && SocketPath.environment("TERM") != "dumb"

  /// Writes a message to standard error, after the program's name.
  static func complain(_ message: String) {
    StandardError.write("settle: \(Excerpt.visible(message, keepingLines: true))")
  }

  static func colored(_ text: String, _ color: Color?) -> String {
    guard hasColor, let color else { return text }
    return "\u{1B}[\(color.rawValue)m\(text)\u{1B}[0m"
  }
}

/// A word where a key is needed.
extension GatewayCommand {
  /// Says which key was probably meant by a word without a slash.
  ///
  /// `hint` follows where the word is the name of a device.
  func explainBareName(_ name: String, hint: String = "") throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.describe, key: name))
    guard case .described(let rows, _) = reply else { return .unexpected(reply) }
    guard !rows.isEmpty, !name.contains(where: { "*?".contains($0) }) else {
      Terminal.complain(#"a key names one property, and "\#(name)" is a pattern"#)
      return .badInput
    }
    let keys = rows.prefix(20).map(\.key).joined(separator: ", ")
    let more = rows.count > 20 ? " and \(rows.count - 20) more" : ""
    Terminal.complain(#""\#(name)" is a device; its properties are \#(keys)\#(more)\#(hint)"#)
    return .badInput
  }
}

/// Rows of text: aligned under headings on a terminal, tab separated in a pipe.
struct TextTable {
  struct Cell {
    let text: String
    let color: Terminal.Color?

    init(_ text: String, _ color: Terminal.Color? = nil) {
      self.text = Excerpt.visible(text)
      self.color = color
    }
  }

  private static let gap = 2

  let headings: [String]
  var rows: [[Cell]] = []

  init(_ headings: [String]) { self.headings = headings }

  func print() {
    guard !rows.isEmpty else { return }
    guard Terminal.isInteractive else {
      for row in rows { StandardOutput.print(row.map(\.text).joined(separator: "\t")) }
      return
    }
    let widths = headings.indices.map { column in
      max(headings[column].count, rows.map { $0[column].text.count }.max() ?? 0)
    }
    let total = widths.reduce(0, +) + Self.gap * (widths.count - 1)
    let isNarrow = StandardOutput.columns.map { total > $0 } ?? false
    for row in [headings.map { Cell($0, .faint) }] + rows {
      StandardOutput.print(isNarrow ? stacked(row, widths) : aligned(row[...], widths[...]))
    }
  }

  /// The first cell on a line of its own, the others indented below it.
  private func stacked(_ row: [Cell], _ widths: [Int]) -> String {
    aligned(row.prefix(1), widths.prefix(1)) + "\n" + String(repeating: " ", count: Self.gap)
      + aligned(row.dropFirst(), widths.dropFirst())
  }

  private func aligned(_ row: ArraySlice<Cell>, _ widths: ArraySlice<Int>) -> String {
    var line = ""
    for (column, cell) in zip(row.indices, row) {
      let isLast = column == row.indices.last
      let padding = isLast ? 0 : widths[column] - cell.text.count + Self.gap
      line += Terminal.colored(cell.text, cell.color) + String(repeating: " ", count: padding)
    }
    return line
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Lays out help for 80 columns.
struct HelpText {
  private static let width = 80
  private(set) var text = ""

  /// A heading followed by a sentence.
  mutating func paragraph(_ heading: String, _ sentence: String) {
    append(Self.wrap("\(heading): \(sentence)", indent: 0))
  }

  /// Paragraphs, separated by an empty line; each paragraph is wrapped to the width.
  mutating func paragraphs(_ discussion: String) {
    for paragraph in Self.paragraphs(of: discussion) {
      separate()
      append(Self.wrap(paragraph, indent: 0))
    }
  }

  /// The paragraphs of `text`, which empty lines separate.
  static func paragraphs(of text: String) -> [String] {
    text.split(separator: Character("\n"), omittingEmptySubsequences: false)
      .split(whereSeparator: \.isEmpty)
      .map { $0.joined(separator: "\n") }
  }

  mutating func usage(_ command: String, _ parts: [String]) {
    separate()
    let head = "USAGE: \(command) "
    var line = head
    for part in parts {
      // Parts are not split, so an option stays beside its value.
      if line.count + part.count > Self.width, line.count > head.count {
        text += line.trimmingEnd() + "\n"
        line = String(repeating: " ", count: head.count)
      }
      line += part + " "
    }
    text += line.trimmingEnd() + "\n"
  }

  mutating func table(_ heading: String, _ rows: [(name: String, help: String)]) {
    guard !rows.isEmpty else { return }
    separate()
    text += "\(heading):\n"
    let column = min(26, 4 + (rows.map(\.name.count).max() ?? 0))
    for row in rows {
      let start = "  \(row.name)"
      let lines = Self.wrap(row.help, indent: column)
      if start.count + 2 > column {
        text += start + "\n"
        append(lines)
      } else {
        append([start + (lines.first?.dropFirst(start.count) ?? "")] + lines.dropFirst())
      }
    }
  }

  mutating func examples(_ examples: [Example]) {
    guard !examples.isEmpty else { return }
    separate()
    text += "EXAMPLES:\n"
    for example in examples {
      text += "  \(example.line)\n"
      append(Self.wrap(example.meaning, indent: 6))
    }
  }

  private mutating func separate() { if !text.isEmpty { text += "\n" } }

  private mutating func append(_ lines: [String]) {
    for line in lines { text += line + "\n" }
  }

  /// The words of `text` in lines that start with `indent` spaces.
  private static func wrap(_ text: String, indent: Int) -> [String] {
    var lines: [String] = []
    var line = String(repeating: " ", count: indent)
    var isEmpty = true
    for word in text.split(whereSeparator: \.isWhitespace) {
      if !isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = String(repeating: " ", count: indent)
        isEmpty = true
      }
      line += (isEmpty ? "" : " ") + word
      isEmpty = false
    }
    return lines + [line]
  }
}

extension String {
  fileprivate func trimmingEnd() -> String {
    var result = self
    while result.last == " " { result.removeLast() }
    return result
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing

/// A text with mistakes, and the lines that must report them.
struct Mistake: Sendable, CustomTestStringConvertible {
  let text: String
  let lines: [String]

  var testDescription: String { text }

  /// The cases of a fixture: `=====`, the text, `>>>`, the lines.
  static func all(in name: String) throws -> [Mistake] {
    let file = Loading.root + "/Tests/ConfigurationTests/Fixtures/\(name)"
    let content = try String(contentsOf: URL(filePath: file), encoding: .utf8)
    var cases: [Mistake] = []
    for part in content.split(separator: "\n=====\n").dropFirst() {
      let halves = part.split(separator: "\n>>>\n")
      cases.append(
        Mistake(
          text: String(halves[0]).replacing("\\u{1}", with: "\u{1}"),
          lines: halves[1].split(separator: "\n").map { String($0) }
        )
      )
    }
    return cases
  }
}

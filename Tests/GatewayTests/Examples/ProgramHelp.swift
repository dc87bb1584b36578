// Settle
// SPDX-License-Identifier: Apache-2.0

import Glibc
import Operations
import TestBroker

/// The parsed `--help` of a built program.
struct ProgramHelp {
  let text: String
  let code: Int32?

  /// Asks `settle` or `settled`, such as with `["set", "--help"]`.
  init(_ program: String = "settle", _ arguments: [String]) throws {
    let reader = try LineReader()
    let process = try SpawnedProcess(
      arguments: [BuiltProgram.path(program)] + arguments,
      output: .descriptor(reader.writer),
      errors: .descriptor(reader.writer)
    )
    reader.closeWriter()
    _ = reader.waitFor(within: .patience) { _ in nil as Bool? }
    code = if case .exited(let code)? = process.wait() { code } else { nil }
    text = reader.lines.joined(separator: "\n")
  }

  /// The commands that a program has, from the list in its help.
  static func commands(of program: String = "settle") throws -> [String] {
    try ProgramHelp(program, ["--help"]).sections
      .filter { !["OPTIONS", "EXAMPLES"].contains($0.title) }
      .flatMap(\.entries).map(\.name)
  }

  /// A heading, and the lines under it that begin a row.
  struct Section {
    var title: String
    var entries: [(name: String, help: String)] = []
  }

  /// The tables: `GATEWAY:`, `OPTIONS:` and so on.
  var sections: [Section] {
    var found: [Section] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      if line.hasSuffix(":"), line.first?.isUppercase == true {
        found.append(Section(title: String(line.dropLast())))
      } else if !found.isEmpty, line.hasPrefix("  "), !line.hasPrefix("   ") {
        let text = line.dropFirst(2)
        let end = text.firstRange(of: "  ")?.lowerBound ?? text.endIndex
        let help = text[end...].drop { $0 == " " }
        found[found.count - 1].entries.append((String(text[..<end]), String(help)))
      }
    }
    return found
  }

  /// How the options are written in the table: `-v, --verbose`, `--wait[=sent|confirmed]`.
  var options: [String] {
    sections.first { $0.title == "OPTIONS" }?.entries.map(\.name) ?? []
  }

  /// The options' long names, such as `--wait`.
  var optionNames: [String] {
    options.compactMap { spelling in
      spelling.split(separator: "--").last.map { "--" + $0.prefix { $0.isLetter || $0 == "-" } }
    }
  }

  /// The command lines under `EXAMPLES`, whole.
  var examples: [String] {
    guard let start = text.firstRange(of: "\nEXAMPLES:\n") else { return [] }
    return text[start.upperBound...].split(separator: "\n").filter {
      $0.hasPrefix("  ") && !$0.hasPrefix("   ")
    }.map { String($0.dropFirst(2)) }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

/// A command line for users to copy, with its documented output.
struct DocumentedExample: Hashable, Sendable, CustomTestStringConvertible {
  /// Where it stands, as `README.md:220` or `settle set --help`.
  var place: String
  var line: String
  /// The lines under it, as documented; empty if none are.
  var output: [String] = []

  /// Commands that ask no gateway, or are one.
  private static let standAlone: Set = [
    "run", "demo", "check", "simulate", "advise", "manual", "init", "profiles", "schema",
  ]

  /// The commands of `settle` and `settled` in the line.
  var commands: [String] {
    let words = line.split { $0.isWhitespace || "()".contains($0) }
    return zip(words, words.dropFirst()).filter { ["settle", "settled"].contains($0.0) }
      .map { String($0.1) }
  }

  /// Whether a gateway has to run beside: unless nothing in the line asks one.
  var needsGateway: Bool {
    let asking = commands.filter { !Self.standAlone.contains($0) }
    return line.hasPrefix("curl ") || !asking.isEmpty && !line.contains("--standalone")
  }

  var testDescription: String { "\(line.split(separator: "\n").first ?? "") (\(place))" }
}

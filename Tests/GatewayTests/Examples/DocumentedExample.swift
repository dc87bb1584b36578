// Settle
// SPDX-License-Identifier: Apache-2.0

import Testing

/// A command line that a person may copy, and what is shown of its output.
struct DocumentedExample: Hashable, Sendable, CustomTestStringConvertible {
  /// Where it stands, as `README.md:220` or `settle set --help`.
  var place: String
  var line: String
  /// The lines under it, as documented; empty if none are.
  var output: [String] = []

  /// Where it is run: a broker is always there, and a gateway unless the example brings its own.
  var needsGateway: Bool {
    ![" run", " demo", " --standalone"].contains { line.contains($0) }
  }

  var testDescription: String { "\(line.split(separator: "\n").first ?? "") (\(place))" }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Devices

/// What `check` prints.
package enum ConfigurationReport {
  /// One line per problem, warnings marked as such; each line ends with a line break.
  package static func text(
    errors: [ConfigurationProblem],
    warnings: [ConfigurationProblem]
  ) -> String {
    var lines: [String] = []
    for problem in errors { lines.append("\(problem)\n") }
    for problem in warnings {
      let place = "\(problem.file):\(problem.line):\(problem.column): "
      lines.append(place + "warning: " + problem.description.dropFirst(place.count) + "\n")
    }
    return lines.joined()
  }

  /// One JSON object per line: `file`, `line`, `column`, `severity`, `message`, `suggestion`.
  package static func jsonLines(
    errors: [ConfigurationProblem],
    warnings: [ConfigurationProblem]
  ) -> String {
    let objects =
      errors.map { $0.json(severity: "error") } + warnings.map { $0.json(severity: "warning") }
    return objects.map { JSONWriter.text($0) + "\n" }.joined()
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Devices

struct GetCommand: PatternCommand {
  static let name = "get"
  static let summary = "Show targets and the values that devices report."
  static let discussion = """
    In a pipe the columns are separated by tabs: key, target, actual, phase, age in milliseconds; \
    "-" means none.
    """
  static let examples = [
    Example("settle get", "Every property."),
    Example("settle get 'desk-lamp/*'", "The properties of one device."),
    Example("settle get --json | jq -r .actual", "Read the actual values in a script."),
  ]
  static let parameters = patternParameters(isOptional: true)

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.get, key: pattern))
    guard case .targets(let rows, _) = reply else { return .unexpected(reply) }
    var table = TextTable(["KEY", "TARGET", "ACTUAL", "PHASE", "AGE"])
    for row in rows {
      let age =
        Terminal.isInteractive
        ? ValueText.age(row.ageMilliseconds) : row.ageMilliseconds.map { "\($0)" } ?? "-"
      table.rows.append([
        .init(row.key), .init(ValueText.text(row.target), .bold),
        .init(ValueText.text(row.actual)),
        .init(row.phase?.rawValue ?? "-", row.phase.flatMap(EventLine.color)), .init(age),
      ])
    }
    show(rows.map(\.json), or: table)
    return .done
  }
}

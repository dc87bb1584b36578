// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON
import Devices

struct GetCommand: GatewayCommand {
  static let name = "get"
  static let summary = "Show what was asked for, and what the devices report."
  static let discussion = """
    In a pipe the columns are separated by tabs: key, target, actual, phase, age in milliseconds; \
    "-" stands for none.
    """
  static let examples = [
    Example("settle get", "Every property."),
    Example("settle get 'desk-lamp/*'", "Those of one device."),
    Example("settle get --json | jq -r .actual", "For programs."),
  ]
  static let parameters: [Parameter<Self>] =
    [
      .argument(
        "pattern",
        \.pattern,
        isOptional: true,
        completion: .keys,
        help: "A key, or a pattern: * any characters, ? one (default: *)."
      )
    ] + connectionParameters

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.get, key: pattern))
    guard case .targets(let rows, _) = reply else { return .unexpected(reply) }
    if connection.json {
      for row in rows { Terminal.print(JSONWriter.bytes(row.json)) }
      return .done
    }
    var table = TextTable(["KEY", "TARGET", "ACTUAL", "PHASE", "AGE"])
    table.rows = rows.map { row in
      let age =
        Terminal.isInteractive
        ? ValueText.age(row.ageMilliseconds) : row.ageMilliseconds.map { "\($0)" } ?? "-"
      return [
        .init(row.key), .init(ValueText.text(row.target), .bold),
        .init(ValueText.text(row.actual)),
        .init(row.phase?.rawValue ?? "-", row.phase.flatMap(EventLine.color)), .init(age),
      ]
    }
    table.print()
    return .done
  }
}

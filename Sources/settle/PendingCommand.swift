// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Devices

struct PendingCommand: PatternCommand {
  static let name = "pending"
  static let summary = "Show the values that have not left yet, and what they wait for."
  static let discussion = """
    A value waits for its key to be quiet, for a token of its lane, for the command before it \
    (in_flight), or for a broker or device that is away (offline).

    In a pipe the columns are separated by tabs: key, value, changes collapsed, what it waits for, \
    milliseconds until it leaves; "-" stands for none.
    """
  static let examples = [
    Example("settle pending", "All of them."),
    Example("settle pending 'desk-lamp/*'", "Those of one device."),
  ]
  static let parameters = patternParameters(isOptional: true)

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.pending, key: pattern))
    guard case .pending(let rows, _) = reply else { return .unexpected(reply) }
    var table = TextTable(["KEY", "VALUE", "COLLAPSED", "WAITS", "DUE"])
    for row in rows {
      let due =
        Terminal.isInteractive
        ? ValueText.age(row.dueMilliseconds) : row.dueMilliseconds.map { "\($0)" } ?? "-"
      table.rows.append([
        .init(row.key), .init(ValueText.text(row.value), .bold), .init("\(row.collapsed)"),
        .init(row.waits.rawValue, row.waits == .offline ? .red : nil), .init(due),
      ])
    }
    show(rows.map(\.json), or: table)
    return .done
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import Values

struct PendingCommand: PatternCommand {
  static let name = "pending"
  static let summary = "Show pending values, and what each waits for."
  static let discussion = """
    A value waits until its key is quiet, for its lane, for the previous command of its \
    key (in_flight), or for an offline broker or device (offline). For a moment after a connection \
    to the broker, the device's availability is not known yet (unknown).

    In a pipe the columns are separated by tabs: key, value, changes collapsed, what it waits for, \
    milliseconds until it is sent; "-" means none. Of an action several commands may wait: the \
    value and the time are those of the next one, and a terminal and --json show how many there are.
    """
  static let examples = [
    Example("settle pending", "All of them."),
    Example("settle pending 'desk-lamp/*'", "The properties of one device."),
  ]
  static let parameters = patternParameters(isOptional: true)

  var pattern = "*"
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    let reply = try ask(ControlRequest(.pending, key: pattern))
    guard case .pending(let rows, _) = reply else { return .unexpected(reply) }
    let hasSeveral = Terminal.isInteractive && rows.contains { $0.waiting > 1 }
    var table = TextTable(
      ["KEY", "VALUE", "COLLAPSED", "WAITS", "DUE"] + (hasSeveral ? ["COUNT"] : [])
    )
    for row in rows {
      let due =
        Terminal.isInteractive
        ? ValueText.age(row.dueMilliseconds) : row.dueMilliseconds.map { "\($0)" } ?? "-"
      table.rows.append([
        .init(row.key), .init(ValueText.text(row.value), .bold), .init("\(row.collapsed)"),
        .init(row.waits.rawValue, row.waits == .offline ? .red : nil), .init(due),
      ])
      if hasSeveral { table.rows[table.rows.count - 1].append(.init("\(row.waiting)")) }
    }
    show(rows.map(\.json), or: table)
    return .done
  }
}

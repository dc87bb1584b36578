// Settle
// SPDX-License-Identifier: Apache-2.0

import Arguments
import Control
import JSON
import Values

struct GetCommand: PatternCommand {
  static let name = "get"
  static let summary = "Show targets and the values that devices report."
  static let discussion = """
    On a terminal, values have their unit, or that of "display" in the device file, and the name \
    of the device and the property follows. Colors are shown as #rrggbb. Everywhere else numbers \
    are in the property's own unit.

    In a pipe the columns are separated by tabs: key, target, actual, phase, age in milliseconds; \
    "-" means none. On a terminal, the phase of an action says how many commands wait, if several \
    do.

    --value prints nothing but the value of one property: what the device reports, or the target \
    where it reports nothing. It exits with 1 if neither is known.
    """
  static let examples = [
    Example("settle get", "Every property."),
    Example("settle get desk-lamp", "The properties of one device."),
    Example("settle get --value desk-lamp/brightness", "The bare value, for a script."),
    Example("settle get --json | jq -r .actual", "All actual values."),
  ]
  static let parameters =
    [
      Parameter<Self>.flag(
        "value",
        { $0.isBare = true },
        help: "Print the bare value of one property."
      )
    ]
    + patternParameters(isOptional: true)

  var pattern = "*"
  var isBare = false
  var connection = ConnectionOptions()

  func run() throws(ClientError) -> ExitCode {
    var client = try connection.connect()
    let limit = Deadline(after: ConnectionOptions.replyTimeout)
    try client.send(ControlRequest(.get, key: pattern))
    let reply = try client.next(by: limit)
    guard case .targets(let rows, _) = reply else { return .unexpected(reply) }
    if isBare { return showValue(of: rows) }
    var properties: [String: PropertyRow] = [:]
    if Terminal.isInteractive, !connection.json {
      try client.send(ControlRequest(.describe, key: pattern))
      let reply = try client.next(by: limit)
      guard case .described(let described, _) = reply else { return .unexpected(reply) }
      for row in described { properties[row.key] = row }
    }
    show(rows.map(\.json), or: table(of: rows, properties))
    return .done
  }

  private func table(of rows: [TargetRow], _ properties: [String: PropertyRow]) -> TextTable {
    let isNamed = Terminal.isInteractive
    var table = TextTable(
      ["KEY", "TARGET", "ACTUAL", "PHASE", "AGE"] + (isNamed ? ["NAME"] : [])
    )
    for row in rows {
      let property = properties[row.key]
      func text(_ value: JSONValue?) -> String { ValueText.text(value, of: property?.kind) }
      let age = isNamed ? ValueText.age(row.ageMilliseconds) : row.ageMilliseconds.map { "\($0)" }
      table.rows.append([
        .init(row.key), .init(text(row.target), .bold), .init(text(row.actual)),
        .init(phase(of: row, isNamed), row.phase.flatMap(EventLine.color)), .init(age ?? "-"),
      ])
      guard isNamed else { continue }
      let names = [property?.deviceName, property?.name].compactMap(\.self)
      table.rows[table.rows.count - 1].append(.init(names.joined(separator: ", "), .faint))
    }
    return table
  }

  private func phase(of row: TargetRow, _ isNamed: Bool) -> String {
    let phase = row.phase?.rawValue ?? "-"
    guard isNamed, let waiting = row.waiting else { return phase }
    return "\(phase), \(waiting) waiting"
  }

  /// Prints the value of the only row.
  private func showValue(of rows: [TargetRow]) -> ExitCode {
    guard let row = rows.first, rows.count == 1 else {
      Terminal.complain("--value prints the value of one key, and \(rows.count) match \(pattern)")
      return .badInput
    }
    guard let value = row.actual ?? row.target else {
      Terminal.complain("no value of \(row.key) is known")
      return .failed
    }
    StandardOutput.print(
      connection.json ? JSONWriter.text(value) : Excerpt.visible(ValueText.shown(value))
    )
    return .done
  }
}

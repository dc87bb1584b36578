// Settle
// SPDX-License-Identifier: Apache-2.0

import Devices
import JSON
import LastOut

/// The table at the end: changes, commands and the final values of each key.
package struct DemoSummary {
  package static let headings = [
    "key", "changes in", "commands out", "collapsed", "worst late", "target", "device",
  ]

  /// One row for each changed key, with the columns of ``headings``.
  package static func rows(of ledger: DemoLedger) -> [[String]] {
    ledger.order.map { key in
      let account = ledger[key]
      return [
        ledger.registry[key].key, String(account.changes), String(account.commands),
        factor(account.changes, account.commands),
        account.worstLateness.map(milliseconds) ?? "-",
        account.target.map { JSONWriter.text($0) } ?? "-", device(ledger, key),
      ]
    }
  }

  /// The table as lines; the first and last column are left-aligned, the others right-aligned.
  package static func lines(of ledger: DemoLedger) -> [String] {
    let table = [headings] + rows(of: ledger)
    let widths = headings.indices.map { column in table.map { $0[column].count }.max() ?? 0 }
    return table.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let padding = String(repeating: " ", count: widths[column] - cell.count)
        let isLeft = column == 0 || column == headings.count - 1
        line += isLeft ? cell + padding : padding + cell
        line += "  "
      }
      while line.last == " " { line.removeLast() }
      return line
    }
  }

  /// The ratio as `100:1`, with one decimal if it is not whole.
  static func factor(_ changes: Int, _ commands: Int) -> String {
    guard commands > 0 else { return "-" }
    let ratio = (Double(changes) / Double(commands) * 10).rounded() / 10
    return JSONWriter.text(.number(ratio)) + ":1"
  }

  /// A duration in milliseconds with two decimals.
  package static func milliseconds(_ duration: Duration) -> String {
    let hundredths = (duration / .microseconds(10)).rounded()
    return JSONWriter.text(.number(hundredths / 100)) + " ms"
  }

  private static func device(_ ledger: DemoLedger, _ key: KeyIndex) -> String {
    switch ledger.agrees(key) {
    case nil: "no state"
    case true?: "agrees"
    case false?: "at " + (ledger[key].reported.map { JSONWriter.text($0) } ?? "nothing")
    }
  }
}

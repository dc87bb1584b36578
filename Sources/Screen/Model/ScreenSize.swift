// Settle
// SPDX-License-Identifier: Apache-2.0

/// How large the terminal is, in cells.
package struct ScreenSize: Hashable, Sendable {
  package var columns: Int
  package var rows: Int

  package init(columns: Int, rows: Int) {
    self.columns = columns
    self.rows = rows
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
internal import JSON
import Values

/// The properties on the screen, in the gateway's order.
package struct RowTable: RandomAccessCollection, MutableCollection, Sendable {
  private var rows: [ScreenRow] = []
  private var indices: [String: Int] = [:]
  /// The number of devices that the properties belong to.
  private(set) var deviceCount = 0
  /// The width of the widest property name, in cells.
  private(set) var labelWidth = 0
  /// The width of the widest unit, in cells.
  private(set) var unitWidth = 0

  package var startIndex: Int { rows.startIndex }
  package var endIndex: Int { rows.endIndex }

  package subscript(position: Int) -> ScreenRow {
    get { rows[position] }
    set { rows[position] = newValue }
  }

  /// The index of the property with `key`.
  func index(of key: String) -> Int? { indices[key] }

  /// The number of pending values.
  var pendingCount: Int { count { $0.progress.isPending } }

  /// Replaces the properties; an unchanged one keeps its row, a changed one its values.
  mutating func replace(with properties: [PropertyRow]) {
    let known = self
    rows = properties.map { property in
      var row = ScreenRow(property)
      if let old = known.index(of: property.key).map({ known[$0] }) {
        if old.property == property { return old }
        row.target = old.target
        row.actual = old.actual
      }
      return row
    }
    indices = [:]
    for (index, row) in rows.enumerated() { indices[row.property.key] = index }
    deviceCount = Set(rows.map(\.deviceID)).count
    labelWidth = rows.map { CellWidth.of($0.label) }.max() ?? 0
    unitWidth = rows.map { CellWidth.of($0.property.kind.numberRule?.shownUnit ?? "") }.max() ?? 0
  }

  /// Forgets the changes that the gateway has not answered.
  mutating func forgetChanges() {
    for index in rows.indices { rows[index].forgetChanges() }
  }

  /// The urgent value that stops a property, and the index of the row that has it.
  ///
  /// The property's own value has precedence over that of a property whose `ends` names it, and
  /// that over any other of the device.
  func urgent(for row: ScreenRow) -> (index: Int, value: JSONValue)? {
    let candidates = rows.indices.filter {
      rows[$0].deviceID == row.deviceID && rows[$0].property.stopValue != nil
    }
    let found =
      candidates.first { rows[$0].property.key == row.property.key }
      ?? candidates.first { rows[$0].property.ends.contains(row.property.key) } ?? candidates.first
    return found.flatMap { index in rows[index].property.stopValue.map { (index, $0) } }
  }
}

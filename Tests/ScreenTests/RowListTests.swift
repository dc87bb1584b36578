// Settle
// SPDX-License-Identifier: Apache-2.0

import Control
import Devices
import JSON
import Testing
import Values

@testable import Screen

@Suite struct RowListTests {
  private func rows(_ keys: [String]) -> RowTable {
    var rows = RowTable()
    rows.replace(with: keys.map { Stage.property($0, .boolean, 20) })
    return rows
  }

  private func list(_ rows: RowTable, lines: Int = 24, filter: String = "") -> RowList {
    var list = RowList(size: ScreenSize(columns: 80, rows: lines), filter: filter)
    list.update(rows)
    return list
  }

  @Test func `each device has a heading, and an empty list no selection`() {
    let rows = rows(["a/x", "a/y", "b/x"])
    let list = list(rows, lines: 12)
    let headings = list.lines.count { if case .device = $0 { true } else { false } }
    #expect(headings == 2)
    #expect(list.shownCount == 3)
    #expect(list.selectedKey == "a/x")
    #expect(self.list(self.rows([])).selectedKey == nil)
  }

  @Test func `the selection stays on its key while the rows change`() {
    var list = list(rows(["a/x", "a/y", "b/x"]))
    list.move(by: 1, rows(["a/x", "a/y", "b/x"]))
    list.update(rows(["0/x", "a/w", "a/x", "a/y"]))
    #expect(list.selectedKey == "a/y")
    list.update(rows(["b/x"]))
    #expect(list.selectedKey == "b/x")
  }

  @Test func `the selection stops at both ends and stays in view`() {
    let rows = rows((100..<160).map { "a/\($0)" })
    var list = list(rows, lines: 12)
    list.move(by: 1000, rows)
    #expect(list.selectedKey == "a/159")
    #expect(list.visibleIndices.contains(59))
    #expect(list.countBelow == 0)
    list.move(by: -1000, rows)
    #expect(list.selectedKey == "a/100")
    #expect(list.firstLine == 0)
  }

  @Test func `a filter without a match empties the list, and its end selects again`() {
    let rows = rows(["a/x", "b/x"])
    var list = list(rows, filter: "nothing")
    #expect(list.shownCount == 0)
    #expect(list.selectedKey == nil)
    list.filter = "b/*"
    list.update(rows)
    #expect(list.selectedKey == "b/x")
  }
}

@Suite struct RowTableTests {
  @Test func `an unchanged property keeps its row, a changed one only its values`() {
    var rows = RowTable()
    rows.replace(with: [Stage.property("a/x", .boolean, 20), Stage.property("a/y", .boolean, 20)])
    for index in rows.indices {
      rows[index].target = true
      rows[index].chosenWord = 1
    }
    rows.replace(with: [Stage.property("a/y", .boolean, 20), Stage.property("a/x", .boolean, 300)])
    #expect(rows.map(\.property.key) == ["a/y", "a/x"])
    #expect(rows.map(\.target) == [true, true])
    #expect(rows.map(\.chosenWord) == [1, 0])
    #expect(rows.index(of: "a/x") == 1)
    #expect(rows.deviceCount == 1)
  }
}

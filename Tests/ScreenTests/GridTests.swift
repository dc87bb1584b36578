// Settle
// SPDX-License-Identifier: Apache-2.0

@testable import Screen
import Testing

struct GridTests {
  @Test(arguments: [
    ("lamp", ["lamp", ""], 4),
    ("0123456789AB", ["0123456789", ""], 10),
    ("電気", ["電気", ""], 4),
    ("012345678電", ["012345678", ""], 9),
    ("e\u{301}x", ["e\u{301}x", ""], 2),
  ])
  func `wide characters are never cut in two`(text: String, rows: [String], end: Int) {
    var grid = Grid(size: ScreenSize(columns: 10, rows: 2))
    #expect(grid.put(text, row: 0, column: 0) == end)
    #expect(grid.texts == rows)
  }

  @Test(arguments: [(-1, 0), (2, 0), (0, -1), (0, 10)])
  func `text outside the grid is clipped`(row: Int, column: Int) {
    var grid = Grid(size: ScreenSize(columns: 10, rows: 2))
    grid.put("x", row: row, column: column)
    #expect(grid.texts == ["", ""])
  }

  @Test func `a row is split into runs of one style`() {
    var grid = Grid(size: ScreenSize(columns: 5, rows: 1))
    grid.put("ab", row: 0, column: 1, style: .bold)
    #expect(
      grid.runs(row: 0) == [
        Grid.Run(column: 0, text: " ", style: .plain),
        Grid.Run(column: 1, text: "ab", style: .bold),
        Grid.Run(column: 3, text: "  ", style: .plain),
      ]
    )
  }
}

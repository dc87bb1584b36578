// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices

/// The arrangement of the screen's parts for a terminal size.
struct ScreenLayout {
  /// The smallest usable terminal.
  static let smallest = ScreenSize(columns: 20, rows: 4)

  /// The maximum width of the state column; reasons are shorter.
  private static let widestState = 48

  /// A part of a property's line; a part that does not fit has width 0.
  struct Column: Hashable {
    var start: Int
    var width: Int
    var end: Int { start + width }
  }

  let size: ScreenSize
  let label: Column
  let value: Column
  let unit: Column
  let level: Column
  let actual: Column
  let state: Column
  let tally: Column

  /// Distributes the columns for the given widths of labels and units.
  init(size: ScreenSize, labelWidth: Int, unitWidth: Int) {
    self.size = size
    let width = size.columns
    let isNarrow = width < 64
    let unitRoom = min(unitWidth, isNarrow ? (width < 36 ? 2 : 5) : 8)
    let valueRoom = isNarrow ? 6 : 8
    let stateRoom = width < 36 ? 5 : 12
    let labelMost =
      isNarrow ? width - 3 - valueRoom - 2 - unitRoom - 1 - stateRoom : max(16, width / 4)
    label = Column(start: isNarrow ? 2 : 3, width: max(4, min(labelWidth, labelMost)))
    value = Column(start: label.end + 1, width: valueRoom)
    unit = Column(start: value.end + (unitRoom > 0 ? 1 : 0), width: unitRoom)
    var next = unit.end + (isNarrow ? 1 : 2)
    func reserve(_ wanted: Int, from least: Int) -> Column {
      guard width >= least else { return Column(start: next, width: 0) }
      defer { next += wanted + 2 }
      return Column(start: next, width: wanted)
    }
    level = reserve(width < 140 ? 21 : 41, from: 104)
    actual = reserve(valueRoom, from: 64)
    let tallyRoom = width >= 76 ? 10 : 0
    let stateEnd = width - (isNarrow ? 0 : 1) - (tallyRoom > 0 ? tallyRoom + 2 : 0)
    // On a wide terminal the columns stay close together.
    state = Column(start: next, width: max(0, min(Self.widestState, stateEnd - next)))
    tally = Column(start: state.end + 2, width: tallyRoom)
  }

  // MARK: - Rows

  static func hasHeading(_ size: ScreenSize) -> Bool { size.rows >= 8 }
  static func hasDetail(_ size: ScreenSize) -> Bool { size.rows >= 6 }
  static func hasRule(_ size: ScreenSize) -> Bool { size.rows >= 20 }
  /// Whether an empty line separates devices.
  static func hasGaps(_ size: ScreenSize) -> Bool { size.rows >= 20 }

  /// The first row of the list.
  static func listTop(_ size: ScreenSize) -> Int { hasHeading(size) ? 2 : 1 }

  static func listHeight(_ size: ScreenSize) -> Int {
    let below = 1 + (hasDetail(size) ? 1 : 0) + (hasRule(size) ? 1 : 0)
    return max(1, size.rows - listTop(size) - below)
  }
}

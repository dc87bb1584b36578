// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices

/// The list of properties: filter, selection and scrolling.
extension ControlScreen {
  /// The height of the list, in lines.
  package var listHeight: Int { ScreenLayout.listHeight(size) }

  /// The number of properties that match the filter.
  package var shownCount: Int {
    lines.count { if case .property = $0 { true } else { false } }
  }

  /// The number of pending values.
  package var pendingCount: Int { rows.indices.count { rows[$0].progress.isPending } }

  /// The number of properties below those in view.
  package var countBelow: Int {
    lines.dropFirst(firstLine + listHeight).count { if case .property = $0 { true } else { false } }
  }

  /// The row indices of the properties in view.
  package var visibleIndices: [Int] {
    lines.dropFirst(firstLine).prefix(listHeight).compactMap { line in
      if case .property(let index) = line { index } else { nil }
    }
  }

  /// Rebuilds the list after a change of rows, filter or size, and keeps the selection if possible.
  mutating func updateLines() {
    let hasGaps = ScreenLayout.hasGaps(size)
    lines = []
    var device = ""
    for (index, row) in rows.enumerated() where passesFilter(row) {
      if row.deviceID != device {
        device = row.deviceID
        if hasGaps, !lines.isEmpty { lines.append(.gap) }
        lines.append(.device(first: index))
      }
      lines.append(.property(index))
    }
    if selectedLine == nil { select(nearest: 0) }
    reveal()
  }

  /// Moves the selection by `count` properties and stops at both ends.
  mutating func move(by count: Int) {
    let properties = lines.indices.filter { if case .property = lines[$0] { true } else { false } }
    guard let line = selectedLine, let position = properties.firstIndex(of: line) else { return }
    let target = min(max(position + count, 0), properties.count - 1)
    select(line: properties[target])
    reveal()
  }

  private func passesFilter(_ row: ScreenRow) -> Bool {
    let wanted = filter.lowercased()
    if wanted.isEmpty { return true }
    let pattern = Pattern(wanted)
    if !pattern.isLiteral { return pattern.matches(row.property.key.lowercased()) }
    return [row.property.key, row.property.deviceName, row.label].contains {
      $0.lowercased().contains(wanted)
    }
  }

  private var selectedLine: Int? {
    guard let index = selectedIndex else { return nil }
    return lines.firstIndex(of: .property(index))
  }

  private mutating func select(nearest line: Int) {
    let found = lines[min(line, lines.count)...].firstIndex {
      if case .property = $0 { true } else { false }
    }
    guard let found else {
      selectedKey = nil
      return
    }
    select(line: found)
  }

  private mutating func select(line: Int) {
    guard case .property(let index) = lines[line] else { return }
    selectedKey = rows[index].property.key
  }

  /// Scrolls the selection into view.
  ///
  /// The first line in view always shows a device's heading.
  private mutating func reveal() {
    let height = listHeight
    if let line = selectedLine, height > 0 {
      firstLine = max(firstLine, line - height + 1)
      if line <= firstLine { firstLine = max(0, line - (height > 1 ? 1 : 0)) }
    }
    firstLine = max(0, min(firstLine, lines.count - height))
    if firstLine < lines.count, lines[firstLine] == .gap { firstLine += 1 }
  }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices

/// Which properties are listed, which of them is selected, and which are in view.
extension ControlScreen {
  /// How many lines the list has room for.
  package var listHeight: Int { ScreenLayout.listHeight(size) }

  /// How many properties the filter lets through.
  package var shownCount: Int {
    lines.count { if case .property = $0 { true } else { false } }
  }

  /// How many values have not left yet.
  package var openCount: Int { rows.indices.count { rows[$0].progress.isOpen } }

  /// How many properties come below those in view.
  package var countBelow: Int {
    lines.dropFirst(firstLine + listHeight).count { if case .property = $0 { true } else { false } }
  }

  /// The places of the properties in view.
  package var placesInView: [Int] {
    lines.dropFirst(firstLine).prefix(listHeight).compactMap { line in
      if case .property(let place) = line { place } else { nil }
    }
  }

  /// Lists anew, after rows, filter or size have changed; keeps the selection where it can.
  mutating func updateLines() {
    let hasGaps = ScreenLayout.hasGaps(size)
    lines = []
    var device = ""
    for (place, row) in rows.enumerated() where passesFilter(row) {
      if row.deviceID != device {
        device = row.deviceID
        if hasGaps, !lines.isEmpty { lines.append(.gap) }
        lines.append(.device(first: place))
      }
      lines.append(.property(place))
    }
    if selectedLine == nil { select(nearest: 0) }
    reveal()
  }

  /// Moves the selection by so many properties, stopping at both ends.
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
    if !pattern.isLiteral { return pattern.matches(row.facts.key.lowercased()) }
    return [row.facts.key, row.facts.deviceName, row.label].contains {
      $0.lowercased().contains(wanted)
    }
  }

  private var selectedLine: Int? {
    guard let place = selectedPlace else { return nil }
    return lines.firstIndex(of: .property(place))
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
    guard case .property(let place) = lines[line] else { return }
    selectedKey = rows[place].facts.key
  }

  /// Brings the selection into view; the topmost line in view is always a device's heading.
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

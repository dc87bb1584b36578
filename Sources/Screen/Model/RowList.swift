// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices
internal import JSON
import Values

/// The lines of the list: filter, selection and scrolling.
package struct RowList: Sendable {
  /// A line of the list.
  package enum Line: Hashable, Sendable {
    /// The heading of a device; `first` is the row index of its first property.
    case device(first: Int)
    case property(Int)
    case gap

    var isProperty: Bool { if case .property = self { true } else { false } }
  }

  private(set) var lines: [Line] = []
  /// The key of the selected property.
  private(set) var selectedKey: String?
  /// The index of the first line in view.
  private(set) var firstLine = 0
  var filter: String
  private var size: ScreenSize
  /// The number of lines in view.
  var height: Int { size.listHeight }

  init(size: ScreenSize, filter: String) {
    self.filter = filter
    self.size = size
  }

  mutating func resize(to size: ScreenSize, _ rows: RowTable) {
    self.size = size
    update(rows)
  }

  /// The number of properties that match the filter.
  var shownCount: Int { lines.count { $0.isProperty } }

  /// The number of properties below those in view.
  var countBelow: Int { lines.dropFirst(firstLine + height).count { $0.isProperty } }

  /// The row indices of the properties in view.
  var visibleIndices: [Int] {
    lines.dropFirst(firstLine).prefix(height).compactMap { line in
      if case .property(let index) = line { index } else { nil }
    }
  }

  /// Rebuilds the list after a change of rows, filter or size, and keeps the selection if possible.
  mutating func update(_ rows: RowTable) {
    lines = []
    var device = ""
    let filter = RowFilter(filter)
    for (index, row) in rows.enumerated() where filter.matches(row) {
      if row.deviceID != device {
        device = row.deviceID
        if size.hasGaps, !lines.isEmpty { lines.append(.gap) }
        lines.append(.device(first: index))
      }
      lines.append(.property(index))
    }
    if selectedLine(rows) == nil {
      selectedKey = nil
      if let first = lines.firstIndex(where: \.isProperty) { select(line: first, rows) }
    }
    reveal(rows)
  }

  /// Moves the selection by `count` properties and stops at both ends.
  mutating func move(by count: Int, _ rows: RowTable) {
    let properties = lines.indices.filter { lines[$0].isProperty }
    guard let line = selectedLine(rows), let position = properties.firstIndex(of: line) else {
      return
    }
    let target = min(max(position + count, 0), properties.count - 1)
    select(line: properties[target], rows)
    reveal(rows)
  }

  private func selectedLine(_ rows: RowTable) -> Int? {
    guard let index = selectedKey.flatMap(rows.index(of:)) else { return nil }
    return lines.firstIndex(of: .property(index))
  }

  private mutating func select(line: Int, _ rows: RowTable) {
    guard case .property(let index) = lines[line] else { return }
    selectedKey = rows[index].property.key
  }

  /// Scrolls the selection into view.
  ///
  /// The first line in view always shows a device's heading.
  private mutating func reveal(_ rows: RowTable) {
    if let line = selectedLine(rows), height > 0 {
      firstLine = max(firstLine, line - height + 1)
      if line <= firstLine { firstLine = max(0, line - (height > 1 ? 1 : 0)) }
    }
    firstLine = max(0, min(firstLine, lines.count - height))
    if firstLine < lines.count, lines[firstLine] == .gap { firstLine += 1 }
  }
}

/// What a user types to find properties: a part of a key or a name, or a pattern over keys.
///
/// The letter case does not count.
struct RowFilter {
  private let text: [UInt8]
  /// `nil` for a text without wildcards.
  private let pattern: Pattern?

  init(_ text: String) {
    let lowercased = text.lowercased()
    self.text = Array(lowercased.utf8)
    let pattern = Pattern(lowercased)
    self.pattern = pattern.isLiteral ? nil : pattern
  }

  func matches(_ row: ScreenRow) -> Bool {
    if text.isEmpty { return true }
    if let pattern { return pattern.matches(row.property.key.lowercased()) }
    return Self.contains(row.searchText.utf8.span, text.span)
  }

  /// Compares bytes, because a list may have many thousand rows and is filtered at each key press.
  private static func contains(_ text: Span<UInt8>, _ part: Span<UInt8>) -> Bool {
    var start = 0
    while start + part.count <= text.count {
      var length = 0
      while length < part.count, text[start + length] == part[length] { length += 1 }
      if length == part.count { return true }
      start += 1
    }
    return false
  }
}

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

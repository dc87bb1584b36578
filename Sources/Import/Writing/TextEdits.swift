// Settle
// SPDX-License-Identifier: Apache-2.0

/// Edits to a text, collected and applied together.
struct TextEdits {
  private struct Edit {
    let range: Range<Int>
    let text: String
    /// The order of insertion, for edits at the same offset.
    let order: Int
  }

  private var edits: [Edit] = []

  mutating func replace(_ range: Range<Int>, with text: String) {
    edits.append(Edit(range: range, text: text, order: edits.count))
  }

  mutating func insert(_ text: String, at offset: Int) { replace(offset..<offset, with: text) }

  /// Applies all edits; of two that overlap, only the first in the text.
  func applied(to bytes: [UInt8]) -> [UInt8] {
    var result: [UInt8] = []
    var position = 0
    for edit in edits.sorted(by: {
      ($0.range.lowerBound, $0.order) < ($1.range.lowerBound, $1.order)
    }) where edit.range.lowerBound >= position {
      result += bytes[position..<edit.range.lowerBound]
      result += Array(edit.text.utf8)
      position = edit.range.upperBound
    }
    return result + bytes[position...]
  }

  /// Removes the marked elements of a list in brackets or braces, with the commas between them.
  ///
  /// `ranges` are those of all elements, in their order.
  mutating func remove(_ marks: [Bool], of ranges: [Range<Int>]) {
    var place = 0
    while let first = marks[place...].firstIndex(of: true) {
      let next = marks[first...].firstIndex(of: false)
      let last = (next ?? marks.endIndex) - 1
      let start =
        next == nil && first > 0 ? ranges[first - 1].upperBound : ranges[first].lowerBound
      replace(start..<(next.map { ranges[$0].lowerBound } ?? ranges[last].upperBound), with: "")
      place = next ?? marks.endIndex
    }
  }
}

extension [UInt8] {
  /// Removes the marked elements of a list; see ``TextEdits/remove(_:of:)``.
  mutating func remove(_ marks: [Bool], of ranges: [Range<Int>]) {
    var edits = TextEdits()
    edits.remove(marks, of: ranges)
    self = edits.applied(to: self)
  }

  /// The line and the column of an offset, both counted from one; columns count characters.
  func position(of offset: Int) -> (line: Int, column: Int) {
    let start = startOfLine(offset)
    let line = self[..<offset].count { $0 == 0x0A } + 1
    return (line, String(decoding: self[start..<offset], as: UTF8.self).count + 1)
  }
}

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

  var isEmpty: Bool { edits.isEmpty }

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
}

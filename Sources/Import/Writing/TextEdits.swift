// Settle
// SPDX-License-Identifier: Apache-2.0

/// Changes to a text, collected by place and made together.
struct TextEdits {
  private struct Edit {
    let range: Range<Int>
    let text: String
    /// Of edits at one place the earlier comes first.
    let order: Int
  }

  private var edits: [Edit] = []

  var isEmpty: Bool { edits.isEmpty }

  mutating func replace(_ range: Range<Int>, with text: String) {
    edits.append(Edit(range: range, text: text, order: edits.count))
  }

  mutating func insert(_ text: String, at place: Int) { replace(place..<place, with: text) }

  /// The bytes with all changes made; of two that overlap, the first in the text is made.
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

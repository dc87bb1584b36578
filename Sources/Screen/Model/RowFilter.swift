// Settle
// SPDX-License-Identifier: Apache-2.0

internal import Control
internal import Devices

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

// Settle
// SPDX-License-Identifier: Apache-2.0

/// Finding and replacing text within text.
///
/// The standard library's own calls (`firstRange(of:)`, `replacing(_:with:)`) link its engine for
/// regular expressions, which adds 1.3 MB to a program and to the memory of each start.
extension StringProtocol {
  /// Where `text` first is, byte for byte; `nil` if it is nowhere or empty.
  ///
  /// The time grows with the product of both lengths.
  package func firstPlace(of text: String) -> Range<Index>? {
    let wanted = text.utf8
    guard let first = wanted.first else { return nil }
    var rest = utf8[...]
    while let start = rest.firstIndex(of: first) {
      rest = rest[start...]
      if rest.starts(with: wanted) { return start..<rest.index(start, offsetBy: wanted.count) }
      rest = rest.dropFirst()
    }
    return nil
  }

  /// Whether `text` is somewhere in this text, byte for byte.
  package func has(_ text: String) -> Bool { firstPlace(of: text) != nil }

  /// This text with `other` in each place of `text`, from the start on.
  package func replaced(_ text: String, by other: String) -> String {
    var result = ""
    var rest = self[...]
    while let place = rest.firstPlace(of: text) {
      result += rest[..<place.lowerBound]
      result += other
      rest = rest[place.upperBound...]
    }
    return result + rest
  }
}

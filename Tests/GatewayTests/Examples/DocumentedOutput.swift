// Settle
// SPDX-License-Identifier: Apache-2.0

/// Documented output, in which values that differ from run to run match any value.
///
/// `…` matches any text, every identifier matches any other, and so does every number that depends
/// on time. Long lines may be broken at any place.
struct DocumentedOutput {
  private let pieces: [String]

  init(_ lines: [String]) {
    let text = Self.plain(lines.joined(separator: "\n"))
    pieces =
      text.isEmpty
      ? [] : text.split(separator: "…", omittingEmptySubsequences: false).map(String.init)
  }

  /// Whether `output` is this, whole; so is anything where nothing is documented.
  func matches(_ output: String) -> Bool {
    guard !pieces.isEmpty else { return true }
    return Self.match(pieces, in: Self.plain(output)[...])?.isEmpty == true
  }

  /// Whether `output` begins like this.
  func isBeginning(of output: String) -> Bool {
    guard var last = pieces.last else { return true }
    // What stands behind the last gap need not have come in this form.
    if pieces.count > 1 { last = "" }
    return Self.match(pieces.dropLast() + [last], in: Self.plain(output)[...]) != nil
  }

  /// What is left of `text` behind the pieces.
  private static func match(_ pieces: [String], in text: Substring) -> Substring? {
    guard let first = pieces.first, text.hasPrefix(first) else { return nil }
    var rest = text.dropFirst(first.count)
    for (index, piece) in pieces.enumerated().dropFirst() {
      if piece.isEmpty, index == pieces.count - 1 { return rest.prefix(0) }
      guard let found = rest.firstRange(of: piece) else { return nil }
      rest = rest[found.upperBound...]
    }
    return rest
  }

  /// Without white space, identifiers and what the clock counts.
  private static func plain(_ text: String) -> String {
    var result = ""
    var rest = text.filter { !$0.isWhitespace }[...]
    while let first = rest.first {
      if let place = volatile.first(where: { rest.hasPrefix($0.mark) }) {
        result += place.mark
        rest = rest.dropFirst(place.mark.count)
          .drop { $0.isASCII && ($0.isNumber || place.hasLetters && $0.isLetter) }
      } else {
        result.append(first)
        rest = rest.dropFirst()
      }
    }
    return result
  }

  /// What stands before such a value, and whether it is more than a number.
  private static let volatile: [(mark: String, hasLetters: Bool)] = [
    (#"{"id":""#, true), (#""age_ms":"#, false), (#"{"cancelled":"#, false), ("id:", false),
    (#""time_ms":"#, false), (#""since_ms":"#, false),
  ]
}

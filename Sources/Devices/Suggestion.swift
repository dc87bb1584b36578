// Settle
// SPDX-License-Identifier: Apache-2.0

/// Suggests corrections for misspelled words.
package enum Suggestion {
  /// The candidate nearest to `word`, if it is near enough to be a typing mistake.
  ///
  /// Case and the difference between `-` and `_` are ignored. The first of several equally near
  /// candidates wins. A word of more than 80 bytes gets no suggestion. The cost per candidate is the
  /// product of both lengths.
  package static func nearest<Words: Sequence>(to word: String, in candidates: Words) -> String?
  where Words.Element == String {
    guard !word.isEmpty, word.utf8.count <= 80 else { return nil }
    let sought = normalized(word)
    let allowance = max(1, sought.count / 3)
    var best: (distance: Int, word: String)?
    for candidate in candidates {
      guard candidate != word, candidate.utf8.count <= 80 else { continue }
      let distance = distance(sought, normalized(candidate))
      if distance <= allowance, distance < best?.distance ?? .max, distance < sought.count {
        best = (distance, candidate)
      }
    }
    return best?.word ?? completion(of: sought, in: candidates)
  }

  /// `; did you mean "X"?` to append to a message, or an empty string where no candidate is near.
  package static func hint(for word: String, in candidates: some Sequence<String>) -> String {
    question(nearest(to: word, in: candidates))
  }

  /// `; did you mean "X"?` to append to a message, or an empty string without a suggestion.
  package static func question(_ meant: String?) -> String {
    meant.map { #"; did you mean "\#(Excerpt.of($0))"?"# } ?? ""
  }

  /// The only candidate that starts with `sought`, an abbreviation of three letters or more.
  private static func completion<Words: Sequence>(
    of sought: [UInt8],
    in candidates: Words
  ) -> String? where Words.Element == String {
    guard sought.count >= 3 else { return nil }
    let completions = candidates.filter {
      $0.utf8.count > sought.count && normalized($0).starts(with: sought)
    }
    return completions.count == 1 ? completions[0] : nil
  }

  private static func normalized(_ word: String) -> [UInt8] {
    word.utf8.map { byte in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
      case UInt8(ascii: "-"): UInt8(ascii: "_")
      default: byte
      }
    }
  }

  /// The Damerau-Levenshtein distance: insertions, deletions, replacements and adjacent swaps.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var older: [Int] = []
    var previous = Array(0...right.count)
    for (row, a) in left.enumerated() {
      var current = [row + 1]
      for (column, b) in right.enumerated() {
        var cost = min(
          current[column] + 1,
          previous[column + 1] + 1,
          previous[column] + (a == b ? 0 : 1)
        )
        if row > 0, column > 0, a == right[column - 1], left[row - 1] == b {
          cost = min(cost, older[column - 1] + 1)
        }
        current.append(cost)
      }
      older = previous
      previous = current
    }
    return previous[right.count]
  }
}

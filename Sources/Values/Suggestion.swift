// Settle
// SPDX-License-Identifier: Apache-2.0

/// Suggests corrections for misspelled words.
package enum Suggestion {
  /// What a search found, and what it cost.
  package struct Search {
    /// The nearest candidate; `nil` where none is near.
    package var word: String?
    /// Cells of distance tables that were computed.
    package var cells = 0
  }

  /// Letters that may be wrong, at most, however long the word is.
  private static let mostMistakes = 3
  /// Cells that one search may compute, about a millisecond's worth; the best candidate until then
  /// is the result.
  package static let cellLimit = 200_000

  /// The candidate nearest to `word`, if it is near enough to be a typing mistake.
  ///
  /// Case and the difference between `-` and `_` are ignored. The first of several equally near
  /// candidates wins. A word of more than 80 bytes gets no suggestion.
  package static func nearest(
    to word: String,
    in candidates: some Sequence<String>
  ) -> String? {
    search(for: word, in: candidates).word
  }

  /// ``nearest(to:in:)`` with its cost: linear in the number of candidates, and in the end bounded
  /// by ``cellLimit``.
  package static func search(
    for word: String,
    in candidates: some Sequence<String>
  ) -> Search {
    guard !word.isEmpty, word.utf8.count <= EditDistance.longestWord else { return Search() }
    var sought = EditDistance(from: word)
    var limit = min(max(1, sought.count / 3), mostMistakes, sought.count - 1)
    var best: String?
    var completion: String?
    var completions = 0
    for candidate in candidates {
      let prefix = sought.commonPrefix(with: candidate)
      if prefix == sought.count, candidate.utf8.count > prefix {
        completions += 1
        completion = candidate
      }
      guard limit >= 0, sought.cells < cellLimit, candidate != word,
        let distance = sought.distance(to: candidate, sharing: prefix, limit: limit)
      else { continue }
      best = candidate
      limit = distance - 1
    }
    // An abbreviation of three letters or more, of one candidate only.
    if completions != 1 || sought.count < 3 { completion = nil }
    return Search(word: best ?? completion, cells: sought.cells)
  }

  /// `; did you mean "X"?` to append to a message, or an empty string where no candidate is near.
  package static func hint(for word: String, in candidates: some Sequence<String>) -> String {
    question(nearest(to: word, in: candidates))
  }

  /// `; did you mean "X"?` to append to a message, or an empty string without a suggestion.
  package static func question(_ meant: String?) -> String {
    meant.map { #"; did you mean "\#(Excerpt.of($0))"?"# } ?? ""
  }
}

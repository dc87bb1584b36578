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

/// Measures how many mistakes lie between one word and others: insertions, deletions, replacements
/// and adjacent swaps (the Damerau-Levenshtein distance).
///
/// Case and the difference between `-` and `_` are ignored. A distance beyond the limit is not
/// measured to its end: words of too different lengths are not compared, what both words begin and
/// end with is left out, only a band around the table's diagonal is computed, and a row without a
/// cell within the limit ends it.
struct EditDistance {
  /// The longest word that is compared, in bytes.
  static let longestWord = 80

  /// The cells that were computed, over all words.
  private(set) var cells = 0
  private let word: [UInt8]
  /// Three rows of the table: the newest, the one before it, and the one before that.
  private var row: [Int]
  private var previous: [Int]
  private var older: [Int]

  /// Measures from `word`, which has at most ``longestWord`` bytes.
  init(from word: String) {
    self.word = word.utf8.map(Self.normalized)
    precondition(self.word.count <= Self.longestWord, "Longer words are not compared.")
    row = Array(repeating: 0, count: Self.longestWord + 1)
    previous = row
    older = row
  }

  /// The bytes of the word.
  var count: Int { word.count }

  /// How many bytes the word and `other` begin with together.
  func commonPrefix(with other: String) -> Int {
    let bytes = other.utf8.span
    let count = min(word.count, bytes.count)
    var position = 0
    while position < count, word[position] == Self.normalized(bytes[position]) { position += 1 }
    return position
  }

  /// The distance to `other`, which begins with the same `prefix` bytes; `nil` beyond `limit`.
  mutating func distance(to other: String, sharing prefix: Int, limit: Int) -> Int? {
    let bytes = other.utf8.span
    guard bytes.count <= Self.longestWord, abs(word.count - bytes.count) <= limit else {
      return nil
    }
    var left = word.count
    var right = bytes.count
    while left > prefix, right > prefix, word[left - 1] == Self.normalized(bytes[right - 1]) {
      left -= 1
      right -= 1
    }
    return distance(
      of: left - prefix,
      to: bytes.extracting(prefix..<right),
      after: prefix,
      limit: limit
    )
  }

  /// The distance between `count` bytes of the word after `prefix` and `other`.
  private mutating func distance(
    of count: Int,
    to other: Span<UInt8>,
    after prefix: Int,
    limit: Int
  ) -> Int? {
    let beyond = limit + 1
    for column in 0...min(other.count, limit) { row[column] = column }
    for line in 1..<(count + 1) {
      swap(&older, &previous)
      swap(&previous, &row)
      let band = max(1, line - limit)...max(1, min(other.count, line + limit))
      // Beside the band every cell is beyond the limit.
      row[band.lowerBound - 1] = band.lowerBound == 1 ? line : beyond
      if line + limit <= other.count { previous[line + limit] = beyond }
      var least = row[band.lowerBound - 1]
      let letter = word[prefix + line - 1]
      for column in band where column <= other.count {
        let found = Self.normalized(other[column - 1])
        var cost = min(row[column - 1], previous[column]) + 1
        cost = min(cost, previous[column - 1] + (letter == found ? 0 : 1))
        if line > 1, column > 1, letter == Self.normalized(other[column - 2]),
          word[prefix + line - 2] == found
        {
          cost = min(cost, older[column - 2] + 1)
        }
        row[column] = cost
        least = min(least, cost)
      }
      cells += band.count
      if least > limit { return nil }
    }
    let distance = row[other.count]
    return distance <= limit ? distance : nil
  }

  private static func normalized(_ byte: UInt8) -> UInt8 {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"): byte | 0x20
    case UInt8(ascii: "-"): UInt8(ascii: "_")
    default: byte
    }
  }
}

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

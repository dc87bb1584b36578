// Settle
// SPDX-License-Identifier: Apache-2.0

/// Finds what somebody probably meant.
package enum NearMiss {
  /// The candidate closest to `word`, if it is close.
  ///
  /// A third of its letters may differ; a transposition counts as one. Case does not count.
  ///
  /// Costs the product of the lengths for each candidate; words past 64 bytes find nothing.
  package static func of(_ word: String, among candidates: some Sequence<String>) -> String? {
    let typed = Array(word.lowercased().utf8)
    guard typed.count <= 64 else { return nil }
    var best: (candidate: String, distance: Int)?
    for candidate in candidates {
      let distance = distance(typed, Array(candidate.lowercased().utf8))
      let allowed = max(1, max(typed.count, candidate.utf8.count) / 3)
      guard distance <= allowed, distance < best?.distance ?? .max else { continue }
      best = (candidate, distance)
    }
    return best?.candidate
  }

  /// `; did you mean "X"?`, or nothing.
  package static func hint(_ word: String, among candidates: some Sequence<String>) -> String {
    of(word, among: candidates).map { #"; did you mean "\#($0)"?"# } ?? ""
  }

  /// `text` fit for a message: at most 40 characters, control characters escaped.
  package static func shortened(_ text: String) -> String {
    var result = ""
    for (count, character) in text.unicodeScalars.enumerated() {
      if count == 40 { return result + "…" }
      let isControl = character.value < 0x20 || (0x7F..<0xA0).contains(character.value)
      result += isControl ? character.escaped(asASCII: true) : String(character)
    }
    return result
  }

  /// The Damerau-Levenshtein distance, adjacent transpositions only.
  private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...right.count)
    for (row, byte) in left.enumerated() {
      var current = [row + 1]
      for (column, other) in right.enumerated() {
        var cost = min(
          last[column] + (byte == other ? 0 : 1),
          last[column + 1] + 1,
          current[column] + 1
        )
        if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
          cost = min(cost, beforeLast[column - 1] + 1)
        }
        current.append(cost)
      }
      beforeLast = last
      last = current
    }
    return last[right.count]
  }
}

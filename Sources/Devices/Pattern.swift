// Settle
// SPDX-License-Identifier: Apache-2.0

/// A pattern over keys: `*` matches any characters, `/` included; `?` matches one.
package struct Pattern: Hashable, Sendable {
  private let scalars: [Unicode.Scalar]

  package init(_ text: String) {
    scalars = Array(text.unicodeScalars)
  }

  /// Whether the pattern has no wildcard and therefore names one key.
  package var isLiteral: Bool { !scalars.contains { $0 == "*" || $0 == "?" } }

  /// Whether all of `key` matches.
  ///
  /// The worst case takes time proportional to the product of both lengths.
  package func matches(_ key: String) -> Bool { matches(Array(key.unicodeScalars)) }

  /// The same for the characters of a key that is compared with several patterns.
  package func matches(_ text: [Unicode.Scalar]) -> Bool {
    var place = 0
    var position = 0
    /// Where to continue after the last `*` matches one more character.
    var retry: (place: Int, position: Int)?
    while position < text.count {
      if place < scalars.count, scalars[place] == "*" {
        place += 1
        retry = (place, position)
      } else if place < scalars.count, scalars[place] == "?" || scalars[place] == text[position] {
        place += 1
        position += 1
      } else if let last = retry {
        retry = (last.place, last.position + 1)
        place = last.place
        position = last.position + 1
      } else {
        return false
      }
    }
    return scalars[place...].allSatisfy { $0 == "*" }
  }
}

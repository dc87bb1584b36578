// Settle
// SPDX-License-Identifier: Apache-2.0

/// Why a text is not a duration; the description fits behind the name of what it was given for.
package enum DurationTextError: Error, Hashable, Sendable, CustomStringConvertible {
  /// A number without a unit.
  case missingUnit(String)
  case malformed(String)
  case tooLong(String)

  package var description: String {
    switch self {
    case .missingUnit(let text):
      #"needs a unit, found "\#(Excerpt.of(text))"; did you mean "\#(text)s" or "\#(text)ms"?"#
    case .malformed(let text):
      #"must be \#(DurationText.forms), found "\#(Excerpt.of(text))""#
        + Suggestion.question(DurationText.suggestion(for: text))
    case .tooLong(let text): #"is too long, found "\#(Excerpt.of(text))"; one year is the most"#
    }
  }
}

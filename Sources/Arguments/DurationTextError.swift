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
      #"needs a unit, found "\#(NearMiss.shortened(text))"; did you mean "\#(text)s" or "\#(text)ms"?"#
    case .malformed(let text):
      #"must be \#(DurationText.allowed), found "\#(NearMiss.shortened(text))""#
    case .tooLong(let text):
      #"is too long, found "\#(NearMiss.shortened(text))"; ten years is the most"#
    }
  }
}

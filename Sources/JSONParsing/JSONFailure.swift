// Settle
// SPDX-License-Identifier: Apache-2.0

/// What jansson, or the walk over its tree, could not take; positions are not yet lines and columns.
struct JSONFailure: Error {
  enum Kind {
    case outOfMemory
    case invalidUTF8
    case endOfInput
    case trailingText
    case nulByte
    case nulInName
    case duplicateName
    case numericOverflow
    case tooDeep
    /// Everything else; the message says it.
    case syntax
  }

  let kind: Kind
  /// jansson's own words.
  let message: String
  /// How many bytes had been read.
  let position: Int
}

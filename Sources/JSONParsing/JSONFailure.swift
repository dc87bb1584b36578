// Settle
// SPDX-License-Identifier: Apache-2.0

/// A failure of jansson or of the walk over its tree; positions are not yet lines and columns.
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
    /// Any other failure; the message has the details.
    case syntax
  }

  let kind: Kind
  /// The message of jansson.
  let message: String
  /// The number of bytes read.
  let position: Int
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CJansson
package import JSON

/// Parses JSON text with jansson: any top-level value, bounded depth, positions in errors.
///
/// Objects keep the order of their members; a duplicate name in an object is an error.
/// A NUL written as `\u0000` is allowed in strings and refused in names. Integers are exact within
/// 64 bits and become numbers beyond. The caller limits the size.
package enum JSONParser {
  /// The maximum nesting of arrays and objects.
  package static let maximumDepth = 256

  /// Reads `text` as one JSON value.
  package static func parse(_ text: String) throws(JSONParseError) -> JSONValue {
    try parse(text.utf8.span)
  }

  /// Reads `bytes` as one JSON value; anything but white space after it is an error.
  package static func parse(_ bytes: Span<UInt8>) throws(JSONParseError) -> JSONValue {
    if isBlank(bytes) {
      throw JSONParseError(message: "expected a JSON value, found nothing", line: 1, column: 1)
    }
    do throws(JSONFailure) {
      return try load(bytes)
    } catch {
      let text = SourceText(bytes)
      guard error.kind == .numericOverflow, let widened = text.wideningLongIntegers() else {
        throw text.error(for: error)
      }
      do throws(JSONFailure) {
        return try load(widened.bytes.span)
      } catch {
        throw text.error(for: error, at: widened.originalPosition(of: error.position))
      }
    }
  }

  private static func load(_ bytes: Span<UInt8>) throws(JSONFailure) -> JSONValue {
    let document = try JSONDocument(bytes)
    return try document.value()
  }

  private static func isBlank(_ bytes: Span<UInt8>) -> Bool {
    for index in bytes.indices where !SourceText.isWhitespace(bytes[index]) { return false }
    return true
  }
}

/// Why a text is not JSON, and where.
///
/// Lines and columns count from 1; columns count characters, and name the last one that was read.
package struct JSONParseError: Error, Hashable, Sendable, CustomStringConvertible {
  package let message: String
  package let line: Int
  package let column: Int

  package init(message: String, line: Int, column: Int) {
    self.message = message
    self.line = line
    self.column = column
  }

  package var description: String { "\(message) (line \(line), column \(column))" }
}

// Settle
// SPDX-License-Identifier: Apache-2.0

internal import CJansson
package import Devices

/// Reads JSON text through jansson: any value at the top, depth bounded, positions in errors.
///
/// Objects keep the order of their members; a name that comes twice in one object is an error.
/// A NUL written as `\u0000` is carried in strings and refused in names. Integers are exact within
/// 64 bits and become numbers beyond. The size is bounded by whoever received the bytes.
package enum JSONParser {
  /// How many arrays and objects may stand inside each other.
  package static let maximumDepth = 256

  /// Reads `text` as one JSON value.
  package static func parse(_ text: String) throws(JSONParseError) -> JSONValue {
    try parse(text.utf8.span)
  }

  /// Reads `bytes` as one JSON value; anything but white space after it is an error.
  package static func parse(_ bytes: Span<UInt8>) throws(JSONParseError) -> JSONValue {
    if let integer = shortInteger(bytes) { return .integer(integer) }
    if let object = FlatObject.read(bytes) { return object }
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

  /// The whole text as an integer, if it is one of 18 digits or fewer and nothing else.
  ///
  /// Bare numbers are what most messages carry; they need no tree.
  private static func shortInteger(_ bytes: Span<UInt8>) -> Int64? {
    var index = 0
    let isNegative = !bytes.isEmpty && bytes[0] == UInt8(ascii: "-")
    if isNegative { index = 1 }
    let digits = bytes.count - index
    guard (1...18).contains(digits), digits == 1 || bytes[index] != UInt8(ascii: "0") else {
      return nil
    }
    var value: Int64 = 0
    while index < bytes.count {
      let digit = bytes[index] &- UInt8(ascii: "0")
      guard digit < 10 else { return nil }
      value = value * 10 + Int64(digit)
      index += 1
    }
    return isNegative ? -value : value
  }

  private static func isBlank(_ bytes: Span<UInt8>) -> Bool {
    for index in bytes.indices where !SourceText.isWhitespace(bytes[index]) { return false }
    return true
  }
}
